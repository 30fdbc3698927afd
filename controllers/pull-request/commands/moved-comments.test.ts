import { beforeEach, expect, test } from 'vitest';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };
const RENAMED = 'https://git.example.com/other/renamed/pulls/1';

const open = eachProposals();
let at: Proposals;
let name: string;
beforeEach(async () => {
  at = open();
  at.serveBranches();
  await at.policy({}, REQUIRED);
  name = await at.propose();
  await at.reconcile(name);
});

async function read(): Promise<void> {
  await at.reconcile('apps');
  for (let times = 0; times < 4; times += 1) await at.reconcile(name);
}
const condition = () => at.revision(name).kptfile?.status?.conditions?.find(({ type }) => type === GATE);
const executed = () => at.revision(name).record?.commands?.entries ?? [];
const reply = () => at.forge.commentsOf.get(1)?.find(({ body }) => body.includes('topic=commands'))?.body ?? '';

/** The pull request has another address in a new process, and so do its comments, which `change` gives other ids. */
async function move(change: (id: string) => string = (id) => id): Promise<void> {
  at.forge.change(1, { url: RENAMED });
  const moved = (at.forge.commentsOf.get(1) ?? []).map((one) => {
    const id = change(one.id);
    return { ...one, id, url: `${RENAMED}#comment-${id}` };
  });
  at.forge.commentsOf.set(1, moved);
  at.restart();
  await read();
}

test('what was refused is not executed when the repository has another name, and new commands are', async () => {
  at.forge.comment(1, 'bob', '/sluice approve');
  await read();
  expect(executed()).toMatchObject([{ outcome: 'refused' }]);
  await at.set(name, 'True');
  await move();
  expect(at.revision(name).lifecycle).toBe('Proposed');
  expect(executed()).toHaveLength(1);
  at.forge.comment(1, 'bob', '/sluice why');
  await read();
  // The reply lists the earlier one too.
  expect(executed().map(({ command }) => command)).toEqual(['/sluice approve', '/sluice why']);
  at.forge.comment(1, 'bob', '/sluice approve');
  await read();
  expect(at.revision(name).lifecycle).toBe('Published');
});

test('a condition that was set by a command is not set again', async () => {
  at.forge.comment(1, 'bob', `/sluice set ${GATE} True`);
  await read();
  await at.set(name, 'False');
  await move();
  expect(condition()?.status).toBe('False');
});

test.each([
  ['larger', (id: string) => `9${id}`],
  ['smaller', (id: string) => id.slice(-1)],
])('another host gives the comments %s ids', async (_, change) => {
  for (let count = 0; count < 10; count += 1) at.forge.comment(1, 'carl', 'looks good');
  at.forge.comment(1, 'bob', `/sluice set ${GATE} True`);
  await read();
  expect(condition()?.status).toBe('True');
  await at.set(name, 'False');
  await move(change);
  expect(condition()?.status).toBe('False');
  at.forge.comment(1, 'bob', `/sluice set ${GATE} True`);
  await read();
  expect(condition()?.status).toBe('True');
});

test('a command from before the Repository was registered has no effect, and gets a reply', async () => {
  at.forge.comment(1, 'bob', '/sluice approve');
  await at.set(name, 'True');
  // The clock of the host is at 2030.
  at.clock.setBy(Date.UTC(2031, 0, 1) - at.clock.now());
  await at.world.client.delete(repositoryKind, { namespace: 'default', name: 'apps' });
  await at.world.store.remove('apps');
  await at.world.register('apps', { repo: at.path });
  at.restart();
  await read();
  expect(at.revision(name).lifecycle).toBe('Proposed');
  expect(reply()).toContain('it was written before the Repository was registered; write the command again');
  at.forge.skip(366 * 86_400);
  at.forge.comment(1, 'bob', '/sluice approve');
  await read();
  expect(at.revision(name).lifecycle).toBe('Published');
});
