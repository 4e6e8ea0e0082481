import type { TlsFiles } from "./listen/tls-files.js";
import { TlsError } from "./listen/tls-material.js";
import type { ListenPlaces } from "./listen-places.js";
import type { Log } from "./log.js";

const lookEveryMs = 2000;

/**
 * Looks every two seconds whether the files behind a face's TLS were replaced, until the returned function is
 * called, and logs who did not get through, for those who debug. To look at what is in them is the one way that sees every kind of replacing, a rename, a file
 * written anew and a link that turns, and it costs next to nothing.
 */
export function watchTls(places: ListenPlaces, log: Log): () => void {
  const timers = Object.entries(places).flatMap(([face, { tls }]) =>
    tls === undefined ? [] : [watchFiles(face, tls, log)],
  );
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}

function watchFiles(face: string, files: TlsFiles, log: Log): NodeJS.Timeout {
  files.onRefused = (why) => log.debug({ why }, `a client of ${face} did not get through TLS`);
  let isLooking = false;
  return setInterval(() => {
    // A slow file system is not asked again before it has answered.
    if (isLooking) return;
    isLooking = true;
    void lookAgain(face, files, log).finally(() => {
      isLooking = false;
    });
  }, lookEveryMs).unref();
}

/** Takes over what is new in the files, and logs what came of it. */
async function lookAgain(face: string, files: TlsFiles, log: Log): Promise<void> {
  try {
    if (await files.look()) log.info({ validTo: files.validTo }, `new certificates of ${face} are in use`);
  } catch (error) {
    const why = error instanceof TlsError ? { problems: error.problems } : { err: error };
    log.warn(why, `new certificates of ${face} cannot be used: those before stay in use`);
  }
}
