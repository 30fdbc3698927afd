import { createServer } from 'node:net';
import { PerformanceObserver, performance } from 'node:perf_hooks';

/**
 * Preloaded into a server (`--import`): measures for how long its event loop is held up. It listens on the socket of
 * SLUICE_LOOP_MONITOR; each connection gets a `LongestTurn` as JSON, and starts a new measurement.
 *
 * A turn is measured in processor time of the main thread: what else the machine does meanwhile does not count. Neither does the
 * collection of garbage: when V8 collects, and for how long, depends on the whole heap and on the load of the machine, so that it
 * falls on one input or another by chance. Node reports only how long a collection lasted; it gets that share of the turn's
 * processor time.
 */
export interface LongestTurn {
  /** Milliseconds of processor time that code took in the turn with the most of it. */
  readonly codeMs: number;
  /** Milliseconds of processor time that went into collections of garbage in the turn with the most of it. */
  readonly garbageMs: number;
}

interface Span {
  /** Milliseconds, as `performance.now()` counts them. */
  readonly start: number;
  readonly end: number;
}

interface Turn extends Span {
  readonly cpuMs: number;
}

const INTERVAL_MS = 2;
/** Shorter turns are not worth a look. */
const MIN_TURN_MS = 4;

const path = process.env.SLUICE_LOOP_MONITOR;
// The children of the server are not measured.
delete process.env.SLUICE_LOOP_MONITOR;
delete process.env.NODE_OPTIONS;
if (path !== undefined) monitor(path);

function monitor(socketPath: string): void {
  let turns: Turn[] = [];
  let collections: Span[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ start: startTime, end: startTime + duration });
  });
  observer.observe({ entryTypes: ['gc'] });
  let last = { cpuMs: threadCpuMs(), at: performance.now() };
  setInterval(() => {
    const now = { cpuMs: threadCpuMs(), at: performance.now() };
    const cpuMs = now.cpuMs - last.cpuMs;
    if (cpuMs >= MIN_TURN_MS) turns.push({ start: last.at, end: now.at, cpuMs });
    last = now;
  }, INTERVAL_MS).unref();
  createServer((socket) => {
    // The turn that is under way belongs to the input before it, and collections are reported in the turn after theirs.
    setTimeout(() => {
      socket.end(JSON.stringify(longestOf(turns, collections)));
      turns = [];
      collections = [];
    }, 2 * INTERVAL_MS);
    socket.on('error', () => undefined);
  })
    .listen(socketPath)
    .unref();
}

function longestOf(turns: readonly Turn[], collections: readonly Span[]): LongestTurn {
  const longest = { codeMs: 0, garbageMs: 0 };
  for (const { start, end, cpuMs } of turns) {
    let collecting = 0;
    for (const span of collections) collecting += Math.max(0, Math.min(end, span.end) - Math.max(start, span.start));
    const garbageMs = (cpuMs * collecting) / (end - start);
    longest.codeMs = Math.max(longest.codeMs, cpuMs - garbageMs);
    longest.garbageMs = Math.max(longest.garbageMs, garbageMs);
  }
  return longest;
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
