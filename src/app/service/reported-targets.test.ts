import { beforeEach, expect, test } from 'vitest';
import { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';
import { hostEventIn } from '../../server/webhooks/host/host-event.ts';
import { webhookReceivers } from './app-webhooks.ts';

const REPO = 'https://git.example.com/acme/infra';
const KEY = { namespace: 'default', name: 'infra' };
const [COMMIT, OTHER] = ['a'.repeat(40), 'b'.repeat(40)];
const commitOf = (at: number) => at.toString(16).padStart(40, '0');

/** Automatic, except each tenth. */
const targets = Array.from({ length: 200 }, (_, at) => ({
  metadata: { namespace: 'default', name: `edge-${at}` },
  spec: {
    git: { repo: REPO, branch: 'main', directory: `clusters/edge-${at}/` },
    pullRequest: { merge: at % 10 === 0 ? 'manual' : 'automatic' },
  },
  status: { pullRequest: { number: 1000 + at, commit: commitOf(at) } },
})) as unknown as Stored<DeliveryTarget>[];

let woken: string[];
let checked: string[];
let synced: string[];
let report: (message: object) => void;
beforeEach(() => {
  [woken, checked, synced] = [[], [], []];
  const repository = { metadata: KEY, spec: { git: { repo: REPO } } };
  const readers = {
    repositories: { get: () => repository, byIndex: () => [repository] },
    targets: { byIndex: () => targets },
    policies: { listIn: () => [] },
  };
  const clock = new ManualClock();
  const [requests, targetRequests] = [new SyncRequests(clock), new SyncRequests(clock)];
  requests.subscribe(({ name }) => synced.push(name));
  requests.onCheck(({ name }, commit) => checked.push(`${name} ${commit}`));
  targetRequests.subscribe(({ name }) => woken.push(name));
  const { onMessage } = webhookReceivers(readers as never, { requests, targetRequests });
  report = (message) => onMessage(KEY, undefined, hostEventIn(Buffer.from(JSON.stringify(message))));
});

const pull = (number: number, ref: string) => ({
  pull_request: { number, head: { ref, sha: COMMIT, repo: { id: 1 } }, base: { repo: { id: 1 } } },
});
const push = (branch: string, paths: readonly string[]) => ({
  ref: `refs/heads/${branch}`,
  after: COMMIT,
  commits: [{ added: paths.slice(0, 1), modified: paths.slice(1), removed: null }],
});

test.each([
  ['a pull request of its branch', pull(7, 'sluice/delivery/edge-7'), ['edge-7']],
  ['a comment on its pull request', { comment: {}, issue: { number: 1007 }, is_pull: true }, ['edge-7']],
  ['a push to its branch', push('sluice/delivery/edge-7', []), ['edge-7']],
  [
    'a push that changes its directory',
    push('main', ['clusters/edge-7/web/a.yaml', 'clusters/edge-17/b.yaml', 'clusters/other', 'README.md']),
    ['edge-7', 'edge-17'],
  ],
  ['a pull request of a user', pull(8, 'feature'), []],
  ['a pull request of a fork', { pull_request: { number: 9 } }, []],
  ['a push to the main branch that changes no directory of a target', push('main', ['README.md']), []],
  ['a push to the main branch without files', push('main', []), []],
  ['a push to another branch', push('feature', ['clusters/edge-7/web/a.yaml']), []],
  ['something else of the repository', { action: 'edited', label: {} }, []],
])('a message about %s wakes the targets that it is about', (_, message, expected) => {
  report(message);
  expect(woken).toEqual(expected);
  expect([synced, checked]).toEqual([['infra'], []]);
});

test.each([
  ['a check run', (commit: string) => ({ action: 'completed', check_run: { name: 'build', head_sha: commit } })],
  ['a check suite', (commit: string) => ({ action: 'completed', check_suite: { head_sha: commit } })],
  ['a status', (commit: string) => ({ sha: commit, context: 'build', state: 'success' })],
])(
  '%s of others that has ended wakes the target that is to be merged automatically, and who waits for the commit',
  (_, message) => {
    report(message(commitOf(7)));
    // Users merge that of this one.
    report(message(commitOf(10)));
    report(message(OTHER));
    expect(woken).toEqual(['edge-7']);
    expect(checked).toEqual([commitOf(7), commitOf(10), OTHER].map((commit) => `infra ${commit}`));
    expect(synced).toEqual([]);
  },
);

test.each([
  ['a check of Sluice', { action: 'completed', check_run: { name: 'sluice/ready', head_sha: commitOf(7) } }],
  ['a status of Sluice', { sha: commitOf(7), context: 'sluice/ready', state: 'success' }],
  ['a check that has begun', { action: 'created', check_run: { name: 'build', head_sha: commitOf(7) } }],
  ['a pending status', { sha: commitOf(7), context: 'build', state: 'pending' }],
])('%s wakes nothing', (_, message) => {
  report(message);
  expect([woken, checked, synced]).toEqual([[], [], []]);
});
