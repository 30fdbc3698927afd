import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { externalFunctions } from '../../src/function/external/external-functions.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { workerPipelineRunner } from '../../src/function/worker/worker-pipeline-runner.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import { reviewsOf } from '../../src/package/store/policy-objects.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { commitFiles } from '../../test/support/scratch-repository.ts';
import { MemoryForge } from '../pull-request/testing-forge.ts';
import { type UserPullRequestOptions, userPullRequestController } from './user-pull-request-controller.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const GATE = 'example.com/Tested';
const KPTFILE = (more = '', status = '') =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n${more}${status}`;
const GATES = `info:\n  readinessGates:\n    - conditionType: ${GATE}\n`;
const TESTED = `status:\n  conditions:\n    - type: ${GATE}\n      status: "True"\n`;
const LABELS = 'pipeline:\n  mutators:\n    - image: set-labels:v0.2\n      configMap:\n        team: shop\n';
const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';

describe('user-pull-request controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let path: string;
  let forge: MemoryForge;
  let woken: string[];
  let poll: () => Promise<unknown>;
  let renderers: Renderer & { close(): Promise<void> };

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    path = await world.register('apps');
    forge = new MemoryForge();
    const runner = workerPipelineRunner({
      external: externalFunctions({ programs: 'not here', containers: 'not here' }),
      concurrency: 1,
    });
    const renderer = new FunctionRenderer({ runner, catalog: new Catalog(builtIns), rules: () => [] });
    renderers = { render: (request) => renderer.render(request), close: () => runner.close() };
    poll = process();
  });
  afterEach(async () => {
    await renderers.close();
    await world[Symbol.asyncDispose]();
  });

  /** A new process, with nothing in memory. Returns what reads the pull requests, and checks those that changed. */
  function process(more: Partial<UserPullRequestOptions> = {}): typeof poll {
    woken = [];
    const { client, store } = world;
    const controller = userPullRequestController({
      ...{ client, store, clock, mayCreate: undefined, renderer: renderers, restrictedRenderer: renderers },
      openForge: () => forge,
      reviewsOf: async (repository) => reviewsOf(repository, (await client.list(packagePolicyKind, {})).items),
      recorder: world.recorder('controller:pull-request'),
      ...more,
    });
    controller.sources.at(-1)?.start({ enqueue: ({ name }: { name: string }) => void woken.push(name) } as never);
    return async () => {
      let result = await controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
      while (woken.length > 0)
        result = await controller.reconcile({ namespace: 'default', name: woken.shift() ?? '' }, CONTEXT);
      return result;
    };
  }

  async function policy(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<void> {
    const host = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'review' },
      spec: { ...spec, review: { forge: host, approvers: [{ user: 'bob', subject: 'bob@example.com' }], ...review } },
    });
    const { name } = await world.draft('apps/probe/w1');
    await expect.poll(() => world.policyFor(world.store.get(name)).review).toBeDefined();
    await world.store.update(name, { action: 'delete' }, ANNA);
  }

  /** Pushes a branch, of a fork if it is none of the repository, and opens its pull request. Returns the commit. */
  async function pull(
    files: Readonly<Record<string, string | null>>,
    { branch = 'feature', isFork = false }: { branch?: string; isFork?: boolean } = {},
  ): Promise<string> {
    const git = await initRepository(path);
    const ref = isFork ? `refs/pull/${forge.pulls.length + 1}/head` : `refs/heads/${branch}`;
    const main = (await git.resolveRef('refs/heads/main')) ?? '';
    const commit = await commitFiles(git, files, clock.now(), { branch: 'tmp-feature', from: 'refs/heads/main' });
    const old = await git.resolveRef('refs/heads/tmp-feature');
    const before = await git.resolveRef(ref);
    await git.transaction([
      ...(old === undefined ? [] : [{ type: 'delete', ref: 'refs/heads/tmp-feature', old } as const]),
      before === undefined ? { type: 'create', ref, new: commit } : { type: 'update', ref, old: before, new: commit },
    ]);
    await git.close();
    expect(main).not.toBe(commit);
    await world.store.repository('apps').refresh();
    const head = { branch, commit, isSameRepository: !isFork };
    const known = forge.pulls.find((one) => one.head.branch === branch && one.state === 'open');
    const { number } = known ?? (await forge.open({ head: branch, base: 'main', title: 'change', body: '' }));
    forge.change(number, { head });
    return commit;
  }
  const titles = (commit: string) =>
    Object.fromEntries(
      [...(forge.checks.get(commit) ?? [])].map(([name, { state, title }]) => [name, `${state}: ${title}`]),
    );
  const comment = (number: number, topic = 'packages') =>
    (forge.commentsOf.get(number) ?? []).find(({ body }) => body.startsWith(`<!-- sluice:comment topic=${topic} -->`))
      ?.body;
  const refs = async () => {
    const git = await initRepository(path);
    const names = (await git.listRefs(['refs/heads/drafts/'])).map(({ name }) => name);
    await git.close();
    return names;
  };

  test('checks the packages of a branch of any name once, rendered and with their gates, and commits nothing', async () => {
    await policy({ gateChecks: [GATE] });
    const files = { 'web/Kptfile': KPTFILE(GATES + LABELS), 'web/map.yaml': MAP, 'README.md': 'text' };
    const commit = await pull(files);
    await poll();
    expect(titles(commit)).toEqual({
      'sluice/ready': `pending: 1 gate closed: ${GATE} of web`,
      [`sluice/gate/${GATE}`]: 'pending: web: the condition has not been set yet',
    });
    expect(forge.checks.get(commit)?.get('sluice/ready')?.annotations).toMatchObject([
      { path: 'web/map.yaml', line: 1, level: 'warning', title: 'NotRendered' },
    ]);
    expect(comment(1)).toContain('#### `web`');
    expect(comment(1)).toContain('+    team: shop');
    expect(comment(1)).toContain('Added `map.yaml`');
    expect(await refs()).toEqual([]);
    // Its own comment is a change too, and times are in seconds.
    await poll();
    await poll();
    forge.calls.length = 0;
    await poll();
    expect(forge.calls).toEqual(['listUpdated']);
  });

  test('conditions of a pushed branch count as its push, and not those of a fork', async () => {
    await policy();
    const files = { 'web/Kptfile': KPTFILE(GATES, TESTED) };
    const own = await pull(files);
    const foreign = await pull({ ...files, 'web/README.md': 'of a stranger' }, { branch: 'other', isFork: true });
    await poll();
    expect(titles(own)['sluice/ready']).toMatch(/^success: 1 package checked/);
    expect(titles(foreign)['sluice/ready']).toBe(`pending: 1 gate closed: ${GATE} of web`);
    expect(comment(2)).toContain('The branch was not pushed to this repository');
  });

  test('a fork runs with the restricted renderer, as does a head that is no branch of the repository', async () => {
    const used: string[] = [];
    const renderer = (name: string): Renderer => ({
      render: async (request) => {
        used.push(name);
        return renderers.render(request);
      },
    });
    poll = process({ renderer: renderer('full'), restrictedRenderer: renderer('restricted') });
    await policy();
    const files = { 'web/Kptfile': KPTFILE(LABELS), 'web/map.yaml': MAP };
    await pull(files);
    await pull(files, { branch: 'other', isFork: true });
    // As the host reports one that was pushed for review without a branch.
    await pull(files, { branch: 'agit', isFork: true });
    forge.change(3, { head: { ...forge.pulls[2]?.head, isSameRepository: true } as never });
    await poll();
    expect(used.sort()).toEqual(['full', 'restricted', 'restricted']);
  });

  test('mistakes are annotated at their lines: YAML, aliases without end, links, and packages above the limits', async () => {
    await policy();
    let bomb = 'kind: A\na: &a [x,x,x,x,x,x,x,x,x,x]\n';
    for (const [name, of] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf', 'hg', 'ih'].map((pair) => [...pair]))
      bomb += `${name}: &${name} [${Array.from({ length: 10 }, () => `*${of}`).join(',')}]\n`;
    const commit = await pull({
      'a/Kptfile': KPTFILE(LABELS),
      'a/bad.yaml': 'a: 1\nb: [\n',
      'b/Kptfile': KPTFILE(LABELS),
      'b/bomb.yaml': bomb,
      'c/Kptfile': KPTFILE(),
      'c/huge.bin': 'x'.repeat(8 * 1024 * 1024),
    });
    await poll();
    const ready = forge.checks.get(commit)?.get('sluice/ready');
    expect(ready?.state).toBe('failure');
    expect(
      ready?.annotations
        ?.filter(({ level }) => level === 'failure')
        .map(({ path: at, line, title }) => `${at}:${line} ${title}`),
    ).toEqual(['a/bad.yaml:3 InvalidYaml', 'b/bomb.yaml:3 InvalidYaml', 'c/huge.bin:1 TooLarge']);
  });

  test('many packages are bounded, and what is left out fails the check', async () => {
    await policy();
    const files = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`p${at}/Kptfile`, KPTFILE()]));
    const commit = await pull(files);
    await poll();
    expect(titles(commit)['sluice/ready']).toBe(
      'failure: It changes 25 packages, of which 5 are not checked; split it',
    );
    expect(comment(1)).toContain('**It changes 25 packages, of which 5 are not checked; split it.**');
  });

  test('judges the merge with the main branch, again when its packages move there, and names what both changed', async () => {
    await policy();
    await world.push(path, { 'web/Kptfile': KPTFILE(), 'web/a.yaml': MAP });
    await world.store.repository('apps').refresh();
    const commit = await pull({ 'web/b.yaml': MAP });
    await poll();
    expect(titles(commit)['sluice/ready']).toMatch(/^success/);
    await world.push(path, { 'web/c.yaml': 'a: [' });
    await world.store.repository('apps').refresh();
    await poll();
    // The mistake is that of the main branch, and the package cannot be rendered with it only where it has a pipeline.
    expect(titles(commit)['sluice/ready']).toMatch(/^success/);
    await world.push(path, { 'web/b.yaml': 'kind: Other\n' });
    await world.store.repository('apps').refresh();
    await poll();
    expect(titles(commit)['sluice/ready']).toMatch(
      /^failure: 1 error: web\/b\.yaml:1: the main branch has changed it too/,
    );
  });

  test('a pull request without packages gets its check and no comment; proposals and other policies get nothing', async () => {
    await policy();
    const commit = await pull({ 'docs/page.md': 'text' });
    const proposal = await pull({ 'web/Kptfile': KPTFILE() }, { branch: 'proposed/web/v1' });
    await poll();
    expect(titles(commit)).toEqual({ 'sluice/ready': 'success: It changes no package' });
    expect(forge.commentsOf.size).toBe(0);
    expect(titles(proposal)).toEqual({});
    poll = process({ reviewsOf: async () => [] });
    forge.calls.length = 0;
    await poll();
    expect(forge.calls).toEqual([]);
  });

  test('hostile texts are shown as code, in bounded length', async () => {
    await policy();
    const evil = '<img src=x> @everyone ```\n[x](http://evil)\u001b[31m|';
    const commit = await pull({
      'web/Kptfile': KPTFILE(`info:\n  readinessGates:\n    - conditionType: ${JSON.stringify(evil)}\n`),
      'web/a.yaml': `# ${'`'.repeat(10)}\n${MAP}`,
    });
    await poll();
    expect(titles(commit)['sluice/ready']).not.toContain('\u001b');
    const text = comment(1) ?? '';
    expect(text).not.toContain('\u001b');
    expect(text).toMatch(/\| `<img src=x> @everyone ''' \[x\]\(http:\/\/evil\)[^`]*` \|/);
    expect(text).toMatch(/^`{11}diff$/m);
  });

  describe('/sluice adopt', () => {
    const say = (number: number, author: string, text: string) => forge.comment(number, author, text);

    test('makes drafts at the head of the branch, once, that say where they are from', async () => {
      await policy();
      const commit = await pull({ 'web/Kptfile': KPTFILE(), 'db/Kptfile': KPTFILE() });
      await poll();
      expect(comment(1)).toContain('`/sluice adopt`');
      say(1, 'Bob', '/sluice adopt\nplease');
      await poll();
      const draft = world.store.get('apps.web.pr-1');
      expect(draft).toMatchObject({ lifecycle: 'Draft', commit });
      expect(draft.record?.annotations).toEqual({
        'sluice.dev/pull-request': 'https://git.example.com/owner/apps/pulls/1',
        'sluice.dev/pull-request-commit': commit,
      });
      expect(await refs()).toEqual(['refs/heads/drafts/db/pr-1', 'refs/heads/drafts/web/pr-1']);
      expect(comment(1)).toContain('Adopted as the draft `apps.web.pr-1`.');
      // Its content is of those who pushed it, and not of the user who adopted it.
      const { record } = await world.store.evaluate('apps.web.pr-1');
      expect(record.contributors?.map(({ name }) => name)).toEqual(['push']);
      poll = process();
      await poll();
      expect(await refs()).toHaveLength(2);
    });

    test('counts only for users whom the policy maps and who may create revisions', async () => {
      await policy();
      poll = process({ mayCreate: async (user) => user !== 'bob@example.com' });
      await pull({ 'web/Kptfile': KPTFILE() });
      say(1, 'eve', '/sluice adopt');
      await poll();
      expect(comment(1, 'adopt')).toContain('does not list eve');
      say(1, 'bob', '/sluice adopt');
      await poll();
      expect(comment(1, 'adopt')).toContain('may not create packagerevisions');
      expect(await refs()).toEqual([]);
      expect(await world.events('apps')).toEqual([
        expect.stringContaining('NotAdopted: '),
        expect.stringContaining('NotAdopted: '),
      ]);
    });

    test('of a fork needs the commit that its author has seen', async () => {
      await policy();
      const commit = await pull({ 'web/Kptfile': KPTFILE() }, { isFork: true });
      say(1, 'bob', '/sluice adopt');
      await poll();
      expect(comment(1, 'adopt')).toContain('name the commit');
      say(1, 'bob', '/sluice adopt 0123456789ab');
      await poll();
      expect(comment(1, 'adopt')).toContain('and not at 0123456789ab');
      expect(await refs()).toEqual([]);
      say(1, 'bob', `/sluice adopt ${commit.slice(0, 12)}`);
      await poll();
      expect(await refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    });

    test('by the policy, for branches of the repository alone', async () => {
      await policy({ userPullRequests: 'adopt' });
      await pull({ 'web/Kptfile': KPTFILE() });
      await pull({ 'db/Kptfile': KPTFILE() }, { branch: 'other', isFork: true });
      await poll();
      expect(await refs()).toEqual(['refs/heads/drafts/web/pr-1']);
    });
  });
});
