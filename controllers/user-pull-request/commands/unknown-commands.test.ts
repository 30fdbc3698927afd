import { expect, test } from 'vitest';
import { eachUserPulls, KPTFILE } from '../../../test/support/user-pull-bench.ts';

const open = eachUserPulls();

test('a command that pull requests of users do not have gets the list of those that they have, in one comment', async () => {
  const at = open();
  await at.policy();
  await at.pull({ 'web/Kptfile': KPTFILE() });
  const say = async (author: string, body: string) => {
    at.forge.comment(1, author, body);
    await at.poll();
    await at.poll();
    return at.comment(1, 'commands');
  };
  await at.poll();
  expect(await say('eve', '/sluice why')).toBeUndefined();
  expect(await say('eve', '/sluice adopt')).toBeUndefined();
  expect(at.comment(1, 'adopt')).toContain('does not list eve');
  expect(await say('bob', '/sluice rerun')).toBeUndefined();
  expect(await say('bob', '/sluice adpot\nplease')).toContain(
    '`/sluice adpot` of `bob` is no command in pull requests of users; their commands are `/sluice adopt` and `/sluice rerun`.',
  );
  expect(await say('bob', '/sluice approve')).toContain('`/sluice approve` of `bob` is no command');
  expect(at.forge.commentsOf.get(1)?.filter(({ body }) => body.includes('is no command'))).toHaveLength(1);
});
