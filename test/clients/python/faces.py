"""The four official clients, their calls spelled alike, so that one test runs through each of them."""

import asyncio
import re
from contextlib import contextmanager

import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.grpc.aio.auth
import tritonclient.grpc.auth
import tritonclient.http
import tritonclient.http.aio
import tritonclient.http.aio.auth
import tritonclient.http.auth
from tritonclient.utils import InferenceServerException

HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "ALREADY_EXISTS": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
}

FACES = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc.aio,
}


# For tests of what only some of the clients have.
over_http = pytest.mark.parametrize("session_face", ["http", "http.aio"], indirect=True)
over_grpc = pytest.mark.parametrize("session_face", ["grpc", "grpc.aio"], indirect=True)
over_asyncio = pytest.mark.parametrize("session_face", ["http.aio", "grpc.aio"], indirect=True)


class Face:
    """One client. Its blocking and its asyncio form answer alike here; refusals are InferenceServerException."""

    def __init__(self, kind, service):
        self.is_http = kind.startswith("http")
        self._module = FACES[kind]
        self._loop = asyncio.Runner() if kind.endswith(".aio") else None
        self.client = self._run(self._make, service.http if self.is_http else service.grpc)

    def _make(self, address):
        client = self._module.InferenceServerClient(address)
        if self._loop is None:
            return client

        async def made():
            return client

        return made()

    def _run(self, call, *args, **options):
        if self._loop is None:
            return call(*args, **options)

        # The clients of asyncio have to be made inside its loop as well as used there.
        async def inside():
            return await call(*args, **options)

        return self._loop.run(inside())

    def call(self, method, *args, **options):
        return self._run(getattr(self.client, method), *args, **options)

    def at_once(self, calls):
        """What each of several calls made side by side gave or raised; asyncio's clients only."""

        async def inside():
            started = [getattr(self.client, method)(*args) for method, *args in calls]
            return await asyncio.gather(*started, return_exceptions=True)

        return self._loop.run(inside())

    def register(self, name, memory, byte_size=None, device_id=0, raw_handle=None, **options):
        self.call(
            "register_cuda_shared_memory",
            name,
            memory.raw_handle if raw_handle is None else raw_handle,
            device_id,
            memory.byte_size if byte_size is None else byte_size,
            **options,
        )

    def unregister(self, name="", **options):
        self.call("unregister_cuda_shared_memory", name, **options)

    def regions(self, name="", **options):
        """(device, bytes) by name; in the service's order over HTTP."""
        answer = self.call("get_cuda_shared_memory_status", name, **options)
        if self.is_http:
            return {each["name"]: (each["device_id"], each["byte_size"]) for each in answer}
        for key, each in answer.regions.items():
            assert key == each.name
        return {each.name: (each.device_id, each.byte_size) for each in answer.regions.values()}

    @contextmanager
    def refusal(self, code, text):
        """The call within is refused with this code, and a message that `text`, a pattern, finds from its start."""
        status = str(HTTP_STATUS[code]) if self.is_http else f"StatusCode.{code}"
        with pytest.raises(InferenceServerException) as refused:
            yield
        assert refused.value.status() == status, refused.value
        assert re.match(text, refused.value.message(), re.DOTALL), refused.value

    def log_in(self, user, password):
        """Registers the client's own Basic auth plugin."""
        self.client.register_plugin(self._module.auth.BasicAuth(user, password))

    def log_out(self):
        self.client.unregister_plugin()

    def close(self):
        self._run(self.client.close)
        if self._loop is not None:
            self._loop.close()
