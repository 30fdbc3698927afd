import { expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { Session } from '../../app/session/session.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { cliFixture } from '../testing.ts';

test('a condition is set on every proposed revision with the labels, in few writes', async () => {
  await using cli = await cliFixture();
  for (const name of ['one', 'two']) await cli.run('repo', 'reg', cli.bare(`${name}.git`));
  const names = ['one.web.v1', 'one.shop.v1', 'two.web.v1', 'one.draft.v1', 'one.other.v1'];
  for (const name of names) {
    const [repository = '', path = '', workspace = ''] = name.split('.');
    await cli.run('rpkg', 'init', path, '--repository', repository, '--workspace', workspace);
  }
  const session = await Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true });
  for (const name of names.slice(0, 4)) {
    await session.repositories.open(`default/${name.split('.')[0]}`);
    const revision = await session.client.get(packageRevisionKind, { name });
    await session.client.update(packageRevisionKind, {
      ...revision,
      metadata: { ...revision.metadata, labels: { ...revision.metadata.labels, region: 'us-west' } },
    });
  }
  await session.close();
  await cli.run('rpkg', 'propose', 'one.web.v1', 'one.shop.v1', 'two.web.v1', 'one.other.v1');
  const set = (...words: string[]) => cli.run('rpkg', 'condition', 'set', ...words, 'example.com/Canary', 'True');
  const done = await set('-l', 'region=us-west');
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout.split('\n').sort()).toEqual([
    '',
    'one.shop.v1 condition example.com/Canary is True',
    'one.web.v1 condition example.com/Canary is True',
    'two.web.v1 condition example.com/Canary is True',
  ]);
  expect(done.stderr).toContain('condition example.com/Canary is True on 3 revisions of 2 repositories');
  expect((await set('-l', 'region=us-west', '--lifecycle', 'Draft')).stdout).toBe(
    'one.draft.v1 condition example.com/Canary is True\n',
  );
  expect((await set('-l', 'region=us-west', '--repository', 'two')).stdout).toMatch(/^two\.web\.v1 [^\n]*\n$/);
  expect(await set('-l', 'region=mars')).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'no Proposed revision matches region=mars; "sluice rpkg get --lifecycle Proposed" lists those that there are\n',
  });
  expect(await set('-l', '')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('the selector of -l is empty'),
  });
  expect(await set('-l', 'region=us-west', 'one.web.v1')).toMatchObject({
    stderr: expect.stringContaining('not both'),
  });
  expect(await cli.run('rpkg', 'condition', 'set', 'one.web.v1', 'example.com/Canary')).toMatchObject({
    stderr: expect.stringContaining('expected a name, a condition type and a status'),
  });
});
