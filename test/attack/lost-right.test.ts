import { afterEach, beforeEach, expect, test } from 'vitest';
import { approvalController } from '../../controllers/approval/approval-controller.ts';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { Session } from '../../src/app/session/session.ts';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';

const NAME = 'edge.web.v1';
const KEY = { namespace: 'default', name: NAME };
const LOST = /the approval of cleo at \S+ does not count any more: this user may not update packagerevisions\/approval/;

let cli: CliFixture;
let session: Session;
let warnings: string[];
/** Users and groups with the right to approve. */
let approvers: Set<string>;

beforeEach(async () => {
  cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('edge.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'edge', '--workspace', 'v1');
  warnings = [];
  approvers = new Set(['ben', 'cleo', 'dora', 'sre']);
  const folder = dataFolder(cli.data);
  session = await Session.open({ folder, actor: { name: 'ben' }, write: true, network: DEFAULT_NETWORK });
  session.mayApprove = async ({ name, groups = [] }) => [name, ...groups].some((one) => approvers.has(one));
  const spec = { approval: { automatic: true, quorum: { required: 2 } } };
  await session.client.create(packagePolicyKind, packagePolicyKind.complete({ metadata: { name: 'two' }, spec }));
  await session.store.reach('default/edge');
  const resolvers = { actor: { name: 'controller:revision' }, face: 'controller' } as const;
  await session.store.change(`default/${NAME}`, { settled: { resolvers: [] } }, resolvers);
  await session.store.update(`default/${NAME}`, { action: 'propose' }, { actor: { name: 'anna' }, face: 'api' });
});
afterEach(async () => {
  await session.close();
  await cli[Symbol.asyncDispose]();
});

const storage = () => session.registry.storage(packageRevisionKind);
const lifecycle = () => session.store.get(`default/${NAME}`).lifecycle;

async function approve(name: string, groups: readonly string[] = []): Promise<void> {
  warnings = [];
  const context: RequestContext = { actor: { name, groups }, face: 'api', warn: (text) => warnings.push(text) };
  const stored = await storage().get(context, KEY);
  await storage().updateSubResource(context, 'approval', {
    ...stored,
    spec: { ...stored.spec, lifecycle: 'Published' },
  });
}

async function reconcile(): Promise<string[]> {
  const { client, store, clock } = session;
  const events: string[] = [];
  const record = (_object: unknown, _type: unknown, reason: string, message: string) =>
    void events.push(`${reason}: ${message}`);
  const controller = approvalController({ client, store, clock, recorder: { record } as never });
  await controller.reconcile(KEY, { signal: new AbortController().signal, failures: 0 });
  return events;
}

test('an approval of a user who has lost the right does not complete a quorum', async () => {
  await approve('cleo');
  approvers.delete('cleo');
  await approve('ben');
  expect(lifecycle()).toBe('Proposed');
  expect(warnings).toContainEqual(expect.stringMatching(LOST));
  expect(session.store.get(`default/${NAME}`).record?.approvals?.map(({ subject }) => subject)).toEqual(['ben']);
  await approve('dora');
  expect(lifecycle()).toBe('Published');
});

test('nor does the controller publish with it when a freeze ends', async () => {
  await session.client.create(freezeKind, freezeKind.complete({ metadata: { name: 'f' }, spec: { reason: 'x' } }));
  await approve('ben');
  await approve('cleo');
  approvers.delete('cleo');
  await session.client.delete(freezeKind, { namespace: 'default', name: 'f' });
  expect(await reconcile()).toContainEqual(expect.stringMatching(LOST));
  expect(lifecycle()).toBe('Proposed');
  approvers.add('cleo');
  await reconcile();
  expect(lifecycle()).toBe('Published');
});

test('the right through a group that the user had then is enough, and one that cannot be read decides nothing', async () => {
  await approve('erik', ['sre']);
  session.mayApprove = async () => {
    throw new Error('the cluster does not respond');
  };
  await expect(approve('ben')).rejects.toThrow('the cluster does not respond');
  expect(lifecycle()).toBe('Proposed');
  session.mayApprove = async ({ groups = [] }) => groups.includes('sre');
  await approve('ben');
  expect(lifecycle()).toBe('Published');
});
