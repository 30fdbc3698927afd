import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from './session.ts';

const ANNA = { actor: { name: 'anna' }, face: 'cli' } as const;
const NAMES = ['first', 'second'];

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  for (const name of NAMES) {
    await cli.run('repo', 'reg', cli.bare(`${name}.git`), '--name', name);
    await cli.run('rpkg', 'init', 'app', '--repository', name, '--workspace', 'v1');
    await cli.run('rpkg', 'propose', `${name}.app.v1`);
  }
  await cli.run('rpkg', 'approve', 'second.app.v1');
});
afterEach(() => cli[Symbol.asyncDispose]());

test('after a start, maxInFlight counts the packages of repositories that are not open yet', async () => {
  const session = await Session.open({
    ...{ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true, opens: true },
  });
  await session.client.create(packagePolicyKind, {
    metadata: { name: 'few' },
    spec: { approval: { maxInFlight: 1 } },
  });
  // It delivers nothing, so that what is published is in flight.
  await session.client.create(deliveryTargetKind, {
    metadata: { name: 'east' },
    spec: { git: { repo: cli.bare('east.git'), branch: 'main', directory: 'all' }, selector: {} },
  });
  await session.repositories.open('default/first');
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  const asked: string[] = [];
  session.whenOpened = (namespace) => {
    asked.push(namespace);
    return opened;
  };
  const approval = session.store.update('default/first.app.v1', { action: 'approve' }, ANNA).catch((error) => error);
  await expect.poll(() => asked).toEqual(['default']);
  await session.repositories.open('default/second');
  resolve();
  expect(await approval).toMatchObject({ message: expect.stringContaining('second.app.v1') });
  expect(session.store.get('default/first.app.v1').lifecycle).toBe('Proposed');
  await session.close();
});
