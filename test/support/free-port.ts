import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range from which systems choose ports of outgoing connections and of port 0: Linux 32768, macOS and Windows 49152. */
const [LOWEST, HIGHEST] = [15_000, 32_767];
const MAX_ATTEMPTS = 100;

/**
 * A port of 127.0.0.1 that is free. Another process could take it before the caller does, which is unlikely: no system chooses such a port, and
 * two tests choose the same one in one of 17,000 cases.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port of 127.0.0.1 in ${MAX_ATTEMPTS} attempts between ${LOWEST} and ${HIGHEST}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
