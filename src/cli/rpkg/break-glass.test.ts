import { expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { Session } from '../../app/session/session.ts';
import { BREAK_GLASS_ANNOTATION } from '../../package/api/objects/revision-object.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

const open = (cli: CliFixture) => Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true });

test('a publication with closed gates is an event, also where no server runs', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  const session = await open(cli);
  const requiredGates = [{ conditionType: 'Tested', approveOnly: true }];
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'p', namespace: 'default' },
    spec: { requiredGates, approval: { breakGlass: ['anna'] } },
  } as never);
  await session.close();
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  await cli.run('rpkg', 'propose', 'one.web.v1');
  expect(
    await cli.run('rpkg', 'approve', '--as', 'anna', 'one.web.v1', '--break-glass', '--reason', 'fire'),
  ).toMatchObject({ code: 0, stdout: 'one.web.v1 approved, with the gates as they are (break-glass)\n' });
  const after = await open(cli);
  const { items } = await after.client.list(eventKind);
  await after.close();
  expect(items.map(({ type, reason, message }) => [type, reason, message])).toEqual([
    ['Warning', 'BreakGlass', expect.stringMatching(/publishes it with --break-glass: fire$/)],
  ]);
});

test('with open gates it is an ordinary approval', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  await cli.run('rpkg', 'propose', 'one.web.v1');
  expect(
    await cli.run('rpkg', 'approve', '--as', 'anna', 'one.web.v1', '--break-glass', '--reason', 'fire'),
  ).toMatchObject({ code: 0, stdout: 'one.web.v1 approved\n' });
});

test('nothing is published with closed gates where the event cannot be written', async () => {
  await using cli = await cliFixture();
  await cli.run('repo', 'reg', cli.bare('one.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  await cli.run('rpkg', 'propose', 'one.web.v1');
  const session = await Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: false });
  await session.repositories.open('default/one');
  const revision = await session.client.get(packageRevisionKind, { name: 'one.web.v1' });
  const annotations = { ...revision.metadata.annotations, [BREAK_GLASS_ANNOTATION]: 'fire' };
  const wanted = {
    ...{ ...revision, metadata: { ...revision.metadata, annotations } },
    spec: { ...revision.spec, lifecycle: 'Published' as const },
  };
  await expect(session.client.subResource('approval').update(packageRevisionKind, wanted)).rejects.toThrow(
    /^nothing was done, since the event BreakGlass could not be written: /,
  );
  expect((await session.client.get(packageRevisionKind, { name: 'one.web.v1' })).spec.lifecycle).toBe('Proposed');
  await session.close();
});
