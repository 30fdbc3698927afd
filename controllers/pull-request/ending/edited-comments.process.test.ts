import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ANNA } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { type HostMerge, hostMerges } from '../merged/host-merges.ts';

const open = eachProposals();
let at: Proposals;
const counted: HostMerge[] = [];
let stop: () => void;
beforeEach(() => {
  at = open();
  counted.length = 0;
  stop = hostMerges.subscribe((one) => void counted.push(one));
});
afterEach(() => stop());

const reports = async (of: string) =>
  (await at.world.events(of)).filter((text) => text.startsWith('MergeNotPublished'));
const comments = () =>
  (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body).filter((body) => body.includes('### Not published'));

/** As a user with write access edits one of Sluice. */
const edited = (topic: string) => at.forge.setComment(1, topic, 'thanks');

async function propose(): Promise<string> {
  await at.policy({ publishOn: 'merge' });
  const name = await at.propose();
  await at.settle();
  return name;
}

describe('a merge that is read after the end of its proposal is reported', () => {
  test.each(['lost-merge', 'not-published'])(
    'although a comment of Sluice was edited to be about that: %s',
    async (topic) => {
      const name = await propose();
      await edited(topic);
      await at.mergeHead(name, 'bob');
      await at.world.store.update(name, { action: 'reject' }, ANNA);
      at.restart();
      await at.settle(60_000);
      expect(await reports(name)).toEqual([expect.stringContaining('had been rejected when that was read')]);
      expect([comments().length, counted.length]).toEqual([1, 1]);
      at.restart();
      await at.settle(60_000);
      expect([(await reports(name)).length, comments().length, counted.length]).toEqual([1, 1, 1]);
    },
  );

  test.each([
    [
      'says that the proposal has ended',
      (body: string) =>
        body.replace(/(begin[^\n]*\n)[\s\S]*(<!-- sluice:end)/, '$1Package revision `apps.app.w1` is Draft now.\n$2'),
    ],
    ['is removed', () => ''],
  ])('also if it is proposed again, and the text of the pull request %s', async (_, textOf) => {
    const name = await propose();
    await at.mergeHead(name, 'bob');
    at.forge.change(1, { closedAt: new Date(at.clock.now()).toISOString() });
    at.clock.advance(60_000);
    await at.world.store.update(name, { action: 'reject' }, ANNA);
    await at.world.store.update(name, { action: 'propose' }, ANNA);
    const { body = '' } = at.forge.pulls[0] ?? {};
    at.forge.change(1, { body: textOf(body) });
    expect(at.forge.pulls[0]?.body).not.toBe(body);
    at.restart();
    for (let turn = 0; turn < 2; turn += 1) await at.settle(60_000);
    expect(await reports(name)).toEqual([expect.stringContaining('was proposed again since')]);
    expect([comments().length, counted.length]).toEqual([1, 1]);
  });
});

test('a merge of several packages that were deleted is reported, although a comment of Sluice was edited', async () => {
  at.serveBranches();
  await at.policy({ batch: {}, publishOn: 'merge' });
  const names = await at.proposeAll('api', 'web');
  await at.settle();
  const { branch } = (await at.forge.get(1)).head;
  await edited('not-published');
  await at.mergeAs(1, 'bob');
  git(at.path, ['update-ref', '-d', `refs/heads/${branch}`]);
  await at.world.store.repository('apps').sync();
  for (const name of names) await at.world.store.update(name, { action: 'delete' }, ANNA);
  for (const name of [...names, 'apps:batches']) await at.reconcile(name);
  await at.settle(60_000);
  expect((await reports('apps')).sort()).toEqual(
    names.map((name) => expect.stringContaining(`publish ${name}, which`)),
  );
  expect([comments().length, counted.length]).toEqual([1, 2]);
});
