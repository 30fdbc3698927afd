import { expect, test } from 'vitest';
import { MERGE_PATCH } from '../support/api/kube-api.ts';
import { git } from '../support/git/git-cli.ts';
import { PatientClient } from './support/patient-client.ts';
import { useInstallation } from './support/use-installation.ts';

const LANES = 6;
const PACKAGES_IN_LANE = 4;
const DROPPED = ['dropped-1', 'dropped-2'];
const API = '/apis/porch.kpt.dev/v1alpha1/namespaces/default';
const REVISIONS = `${API}/packagerevisions`;
const REPOSITORY = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories/packages';
const EVENTS = '/api/v1/namespaces/default/events?limit=5000';

interface ListedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count?: number;
  readonly involvedObject: { readonly name: string };
}

const used = useInstallation({
  replicas: 0,
  async prepare(kept) {
    await kept.add({ role: 'api' });
    await kept.add({ role: 'controllers' });
  },
});

const nameOf = (packageName: string) => `packages.${packageName}.v1`;

/** `Approved packages.a.v1: Proposed → Published v1, by admin`, once for each time that it was emitted. */
async function eventsOf(type: 'Normal' | 'Warning'): Promise<string[]> {
  const { items } = (await used.current.admin.get(EVENTS)).body as unknown as {
    readonly items: readonly ListedEvent[];
  };
  return items
    .filter((event) => event.type === type && event.involvedObject.name.startsWith('packages'))
    .flatMap(({ reason, message, count = 1, involvedObject }) =>
      Array.from({ length: count }, () => `${reason} ${involvedObject.name}: ${message}`),
    )
    .sort();
}

/** Waits until the controllers have read so many packages. */
async function read(packageCount: number): Promise<void> {
  await expect
    .poll(async () => (await used.current.admin.get(REPOSITORY)).body.status, { interval: 200 })
    .toMatchObject({ packageCount });
}

async function send(client: PatientClient, method: string, path: string, body?: unknown): Promise<void> {
  for (;;) {
    const { answer } = await client.send(method, path, { body, headers: { 'content-type': MERGE_PATCH } });
    // The other role has written in between.
    if (answer.status === 409) continue;
    expect(answer.status, answer.text).toBeLessThan(300);
    return;
  }
}

async function create(client: PatientClient, packageName: string): Promise<void> {
  const tasks = [{ type: 'init', init: { description: packageName } }];
  const spec = { packageName, workspaceName: 'v1', repository: 'packages', lifecycle: 'Draft', tasks };
  const kind = { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision' };
  const body = { ...kind, metadata: { namespace: 'default' }, spec };
  // The controllers report a repository as Ready; the other role may see a moment later that it is registered.
  const post = async () => (await client.send('POST', REVISIONS, { body })).answer.status;
  await expect.poll(post, { interval: 200 }).toBe(201);
}

/** All steps of a package, with two writes to its record in between. */
async function publish(client: PatientClient, packageName: string): Promise<void> {
  const name = nameOf(packageName);
  const patch = (path: string, body: unknown) => send(client, 'PATCH', path, body);
  await create(client, packageName);
  await patch(`${API}/packagerevisionresources/${name}`, { spec: { resources: { 'note.txt': packageName } } });
  await patch(`${REVISIONS}/${name}`, { spec: { lifecycle: 'Proposed' } });
  await patch(`${REVISIONS}/${name}`, { metadata: { labels: { reviewed: 'yes' } } });
  // The controllers read Git before they have seen in the ledger what was written, as after the message of a webhook.
  await patch(REPOSITORY, { metadata: { annotations: { 'sluice.dev/sync-requested-at': packageName } } });
  await patch(`${REVISIONS}/${name}/approval`, { spec: { lifecycle: 'Published' } });
}

test('with a process for each role, each step is one Event, and what one of them writes is no push for the other', async () => {
  const { current } = used;
  await Promise.all(current.replicas.map((replica) => replica.leading()));
  await current.register('default');
  const client = new PatientClient(current.admin);
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    Array.from({ length: PACKAGES_IN_LANE }, (_, number) => `load-${lane}-${number}`),
  );
  const published = lanes.flat();
  await Promise.all([
    ...lanes.map(async (names) => {
      for (const packageName of names) await publish(client, packageName);
    }),
    ...['pushed', ...DROPPED].map((packageName) => create(client, packageName)),
  ]);
  await read(published.length + 1 + DROPPED.length);
  for (const packageName of DROPPED) await send(client, 'DELETE', `${REVISIONS}/${nameOf(packageName)}`);
  await read(published.length + 1);
  expect((await current.admin.get(REPOSITORY)).body.status).toMatchObject({
    conditions: expect.arrayContaining([expect.objectContaining({ type: 'sluice.dev/Trust', status: 'True' })]),
  });
  // What a push does is still reported, once; all that was there before it is reported by then.
  const [draft, proposed] = ['refs/heads/drafts/pushed/v1', 'refs/heads/proposed/pushed/v1'];
  git(current.gitFolder, ['update-ref', '--stdin'], `create ${proposed} ${draft}\ndelete ${draft}\n`);
  // A poll would find it within 75 s.
  await send(client, 'PATCH', REPOSITORY, { metadata: { annotations: { 'sluice.dev/sync-requested-at': 'pushed' } } });
  const pushed = nameOf('pushed');
  const moved = 'pushed/v1 went from draft to proposed by a plain push, so no gate was evaluated yet';
  await expect.poll(() => eventsOf('Warning'), { interval: 200 }).toEqual([`Moved ${pushed}: ${moved}`]);
  const expected = [
    ...published.map((one) => `Approved ${nameOf(one)}: Proposed → Published v1, by admin`),
    ...published.map((one) => `Proposed ${nameOf(one)}: Draft → Proposed, by admin`),
    `Proposed ${pushed}: Draft → Proposed, by push`,
  ];
  await expect.poll(() => eventsOf('Normal'), { interval: 200 }).toEqual(expected.sort());
});
