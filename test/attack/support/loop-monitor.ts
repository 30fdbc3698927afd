import { createServer } from 'node:net';

/**
 * Preloaded into a server (`--import`): measures for how long its event loop is held up. It listens on the socket of
 * SLUICE_LOOP_MONITOR; each connection is told the longest turn since the last one, in milliseconds, and starts a new measurement.
 *
 * A turn is measured in processor time of the main thread: what else the machine does meanwhile does not count.
 */
const path = process.env.SLUICE_LOOP_MONITOR;
// The children of the server are not measured.
delete process.env.SLUICE_LOOP_MONITOR;
delete process.env.NODE_OPTIONS;

const INTERVAL_MS = 2;

if (path !== undefined) {
  let last = cpuMs();
  let longest = 0;
  setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, INTERVAL_MS).unref();
  createServer((socket) => {
    // The turn that is under way belongs to the input before it.
    setTimeout(() => {
      socket.end(String(longest));
      longest = 0;
    }, 2 * INTERVAL_MS);
    socket.on('error', () => undefined);
  })
    .listen(path)
    .unref();
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
