// A process that takes part in an election and reports what it knows, one JSON object a line, with times of the machine's monotonic clock.
// Argument: CandidateSettings as JSON. SIGTERM stops it gracefully; `spin` on standard input makes it call only `isLeader()`.
import { writeSync } from 'node:fs';
import { LeaderElector } from '../../../src/controller/leader-election/leader-elector.ts';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { findClusterAccess } from '../../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../../src/kubernetes/http-client.ts';
import type { CandidateReport, CandidateSettings } from './leader-process.ts';

/** Milliseconds between two samples. */
const SAMPLE_MS = 2;
const MAX_SPIN_MS = 60_000;

const settings = JSON.parse(process.argv[2] ?? '') as CandidateSettings;
const { server, kubeconfig, ...election } = settings;
const access = await findClusterAccess({ kubeconfig });
const connection = new Connection({ ...access, ...(server === undefined ? {} : { server }) });
const machineMs = () => Number(process.hrtime.bigint()) / 1e6;
const report = (event: CandidateReport['event'], detail = '') =>
  writeSync(1, `${JSON.stringify({ event, atMs: machineMs(), detail } satisfies CandidateReport)}\n`);

const elector = new LeaderElector({
  ...election,
  client: new HttpClient({ connection, face: 'controller' }),
  clock: systemClock,
  onStartedLeading: (signal) => {
    report('started');
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
  },
  onStoppedLeading: () => report('stopped'),
  onNewLeader: (identity) => report('leader', identity),
  onError: (error) => report('error', String(error)),
});

/** The time is read before the call: a process that leads after it led at it. */
function sample(): boolean {
  const atMs = machineMs();
  const leads = elector.isLeader();
  if (leads) writeSync(1, `${JSON.stringify({ event: 'leads', atMs, detail: '' } satisfies CandidateReport)}\n`);
  return leads;
}

/** Calls `isLeader` without handling any event, until the process was stopped for longer than a leader may lead without a renewal. */
function spin(): void {
  report('spins');
  const end = performance.now() + MAX_SPIN_MS;
  for (let last = performance.now(); last < end; ) {
    // The time first, so that a stop between the two calls counts as one before the call of isLeader.
    const now = performance.now();
    const leads = elector.isLeader();
    if (now - last > election.renewDeadlineMs) return void report('woke', String(leads));
    last = now;
  }
}

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());
process.stdin.on('data', spin).on('end', () => process.exit(1));
const samples = setInterval(sample, SAMPLE_MS);
await elector.run(stop.signal);
report('ended', String(elector.isLeader()));
clearInterval(samples);
await connection.close();
process.exit(0);
