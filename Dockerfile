# The service as an image: compiled where the compiler is, run where it is not.
#
#   docker build -t cudashm .
#   docker run --rm --gpus all --pid host --ipc host -p 127.0.0.1:8000:8000 -e CUDASHM_HTTP_ADDRESS=0.0.0.0 cudashm
ARG NODE_VERSION=20

FROM node:${NODE_VERSION}-bookworm-slim AS build
RUN apt-get update \
  && apt-get install --yes --no-install-recommends g++ make python3 \
  && rm -rf /var/lib/apt/lists/*
# Node's headers come with the image: nothing has to be downloaded for the native build.
ENV npm_config_nodedir=/usr/local
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY native native
RUN npm run build:native
COPY scripts/build-prebuilds.mjs scripts/tree-hash.mjs scripts/
RUN npm run build:prebuilds
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && chmod 0755 dist/main.js
RUN npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="cudashm" \
  org.opencontainers.image.description="Triton's CUDA shared memory API as a standalone gRPC and HTTP service" \
  org.opencontainers.image.licenses="MIT"
# Read by NVIDIA's container runtime: without "compute" there is no libcuda.so.1 in the container.
ENV NVIDIA_VISIBLE_DEVICES=all \
  NVIDIA_DRIVER_CAPABILITIES=compute,utility \
  NODE_ENV=production
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /src/package.json /opt/cudashm/package.json
COPY --from=build /src/node_modules /opt/cudashm/node_modules
COPY --from=build /src/native/prebuilds /opt/cudashm/native/prebuilds
COPY proto /opt/cudashm/proto
COPY --from=build /src/dist /opt/cudashm/dist
RUN ln -s /opt/cudashm/dist/main.js /usr/local/bin/cudashm
# By number, so that Kubernetes can tell that it is not root. The emulated driver shares memory between processes of
# one user only: exporters run as this one too.
USER 1000:1000
EXPOSE 8000 8001 8002
# Finds the service by the variables of the container: set ports and the like by variables, not by flags.
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s --retries=3 CMD ["cudashm", "healthcheck"]
ENTRYPOINT ["cudashm"]
CMD ["serve"]
