import { expect, test } from 'vitest';
import { revisionController } from '../../controllers/revision/revision-controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import teamLabel from './team-label.ts';

const deployment = (name: string, labels = '') =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ${name}\n${labels}spec: {}\n`;

test('the gate opens when the last Deployment has a team', async () => {
  await using world = await fixture(new ManualClock());
  const { client, store, clock } = world;
  await world.register('apps');
  const { reconcile } = revisionController({ client, store, clock, resolvers: [teamLabel] });
  const run = (name: string) =>
    reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });

  const { name } = await world.draft('apps/shop/w1', {
    'front.yaml': deployment('front', '  labels: {team: web}\n'),
    'back.yaml': deployment('back'),
  });
  await run(name);
  const gates = async () =>
    (await store.evaluate(name)).gates.map(({ state, explanation }) => `${state}: ${explanation}`);
  expect(await gates()).toEqual(['NotTrue: the condition is False (NoTeam: add the label "team" to back)']);

  const corrected = Buffer.from(deployment('back', '  labels: {team: core}\n'));
  await store.change(name, { files: new Map([['back.yaml', corrected]]) }, ANNA);
  await run(name);
  expect(await gates()).toEqual([expect.stringMatching(/^Open: issued by resolver:team-label/)]);
  expect(store.get(name).record?.settled?.resolvers).toEqual(['team-label']);

  const other = await world.draft('apps/config/w1', { 'config.yaml': 'apiVersion: v1\nkind: ConfigMap\n' });
  await run(other.name);
  expect(store.get(other.name).etag).toBe(other.etag);
});
