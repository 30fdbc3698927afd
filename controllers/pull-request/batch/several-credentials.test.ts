import { beforeEach, describe, expect, test } from 'vitest';
import type { Forge } from '../../../src/forge/forge.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';
import { proposalsIn } from '../text/section.ts';

const OTHER_SECRET = { forge: { secretRef: { name: 'second' } } };
const TEAMS = { teams: [{ team: 'org/ops', groups: ['ops'] }] };
/** Of a minute or two of a few proposals. */
const MAX_EVALUATIONS = 200;

describe('shared pull requests of a repository that is read with several credentials', () => {
  const open = eachProposals();
  let at: Proposals;
  let evaluations: number;
  /** Names of the Secrets that were used since the last reset, and that the host refuses. */
  const used = new Set<string>();
  const refused = new Set<string>();
  beforeEach(async () => {
    at = open();
    at.serveBranches();
    for (const names of [used, refused]) names.clear();
    at.restart({ openForge });
    evaluations = 0;
    const { store } = at.world;
    const evaluate = store.evaluate.bind(store);
    Object.assign(store, {
      evaluate: (one: string) => {
        evaluations += 1;
        if (evaluations > MAX_EVALUATIONS) throw new Error('the proposals are reconciled again and again');
        return evaluate(one);
      },
    });
  });

  const openForge = ({ forge: { secretRef } }: ReviewPolicy): Forge =>
    new Proxy(at.forge, {
      get: (of, name) => {
        const value: unknown = Reflect.get(of, name, of);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          used.add(secretRef.name);
          if (!refused.has(secretRef.name)) return value.apply(of, args);
          throw new SluiceError('Unauthenticated', `the host does not accept Secret ${secretRef.name}`);
        };
      },
    });
  const reviewOf = (name = '') => at.world.policyFor(at.revision(name)).review;
  const key = (name: string) => ({ namespace: 'default', name });
  /** The names of the proposals that each open pull request shows. */
  const shown = () =>
    at.forge.pulls.map(({ body, state }) => (state === 'open' ? at.world.store.list().flatMap(inText(body)) : []));
  const inText =
    (body: string) =>
    ({ name }: { readonly name: string }) =>
      body.includes(`\`${name}\``) ? [name] : [];

  /** A second policy like the first one, which has `db` from then on. */
  async function addSecond(more: object): Promise<void> {
    const { client } = at.world;
    const { spec } = await client.get(packagePolicyKind, key('review'));
    const packages = ['web', 'api', 'probe'];
    await client.patch(packagePolicyKind, key('review'), { spec: { selector: { packages } } });
    const selector = { packages: ['db', 'job'] };
    await client.create(packagePolicyKind, { metadata: { name: 'second' }, spec: { ...spec, selector } });
    await client.patch(packagePolicyKind, key('second'), { spec: { review: more } });
  }

  test.each([
    ['another Secret', OTHER_SECRET],
    ['the first team', TEAMS],
  ])('costs nothing more after the policy names %s', async (_, review) => {
    await at.policy({ publishOn: 'merge', batch: {} });
    const [name = ''] = await at.proposeAll('web', 'db', 'api', 'job');
    await at.settle(60_000);
    evaluations = 0;
    const before = reviewOf(name);
    await at.world.client.patch(packagePolicyKind, key('review'), { spec: { review } });
    await expect.poll(() => reviewOf(name)).not.toEqual(before);
    await at.settle(120_000);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    used.clear();
    await at.settle(120_000);
    expect([...used]).toEqual([reviewOf(name)?.forge.secretRef.name]);
    await at.mergeAs(1, 'Bob');
    await at.settle(120_000);
    expect(at.revision(name).lifecycle).toBe('Published');
  });

  test.each([
    ['names another Secret', OTHER_SECRET],
    ['names teams', TEAMS],
  ])('come to rest where the policy of one package %s', async (_, more) => {
    await at.policy({ publishOn: 'merge', batch: {} });
    await addSecond(more);
    const [web = '', db = ''] = await at.proposeAll('web', 'db');
    await expect.poll(() => reviewOf(db)?.policy).toBe('second');
    await expect.poll(() => reviewOf(db)).toMatchObject(more);
    await at.settle(120_000);
    expect(shown().sort()).toEqual([[db], [web]]);
  });

  test.each([
    ['another Secret', OTHER_SECRET],
    ['teams', TEAMS],
  ])('give a package another one whose policy names %s from then on', async (_, more) => {
    await at.policy({ publishOn: 'merge', batch: {} });
    const [web = '', db = '', api = ''] = await at.proposeAll('web', 'db', 'api');
    await at.settle(60_000);
    expect(at.forge.pulls).toMatchObject([{ state: 'open' }]);
    await addSecond(more);
    await expect.poll(() => reviewOf(web)?.policy).toBe('review');
    await expect.poll(() => reviewOf(db)).toMatchObject({ policy: 'second', ...more });
    await at.settle(120_000);
    expect(shown()).toEqual([[api, web].sort(), [db]]);
    await at.mergeAs(1, 'Bob');
    await at.settle(120_000);
    expect([web, db, api].map((one) => at.revision(one).lifecycle)).toEqual(['Published', 'Proposed', 'Published']);
  });

  test.each(['forge', 'second'])(
    'get later packages although the host does not accept Secret %s of others',
    async (secret) => {
      await at.policy({ publishOn: 'merge', batch: {} });
      await addSecond(OTHER_SECRET);
      const [web = '', db = ''] = await at.proposeAll('web', 'db');
      await expect.poll(() => reviewOf(db)).toMatchObject({ policy: 'second', ...OTHER_SECRET });
      await at.settle(60_000);
      refused.add(secret);
      at.restart({ openForge });
      const [api = '', job = ''] = await at.proposeAll('api', 'job');
      await at.settle(120_000);
      const [ofFirst, ofSecond] = secret === 'forge' ? [[web], [db, job]] : [[api, web], [db]];
      expect(shown().sort()).toEqual([ofFirst, ofSecond].sort());
      refused.clear();
      await at.settle(120_000);
      expect(shown().sort()).toEqual([
        [api, web],
        [db, job],
      ]);
    },
  );

  test('lose a package with the moment in which it has one of its own', async () => {
    await at.policy({ publishOn: 'merge', batch: {} });
    const [web = '', db = ''] = await at.proposeAll('web', 'db');
    await at.settle(60_000);
    await at.set(db, 'True');
    await at.settle(0);
    // It was written just now, and waits for further changes.
    await at.world.push(at.path, { 'web/a.yaml': 'kind: B\napiVersion: v1\nmetadata: {name: b}\n' });
    await at.sync();
    await at.settle(0);
    const listed = at.forge.pulls.map(({ body }) => proposalsIn(body).length);
    expect(listed).toEqual([1, 1]);
    expect(shown()).toEqual([[db], [web]]);
  });
});
