import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { commitFiles } from '../../../../test/support/scratch-repository.ts';
import { type CliFixture, cliFixture } from '../../../cli/testing.ts';
import { DEFAULT_NETWORK } from '../../../git/network/git-network.ts';
import { initRepository } from '../../../git/open/open-repository.ts';
import type { PolicyChange } from '../../../package/store/policies/concerned-revisions.ts';
import { POLICIES_ANNOTATION, repositoryKind } from '../../../resource/kinds/porch/repository.ts';
import { dataFolder } from '../../data/data-folder.ts';
import { Session } from '../../session/session.ts';
import { policyOf } from '../session-policy.ts';
import { MAX_REPOSITORIES_PER_NAMESPACE } from './repository-policies.ts';

const FOLDER = 'governance/policies';
const policy = (name: string, spec: string) =>
  `apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
const STRICT = policy('strict', '{requiredGates: [{conditionType: tested}]}');
const LATER = policy('later', '{requiredGates: [{conditionType: signed}]}');
const LAX = policy('lax', '{approval: {automatic: true}}');
const LAX_PROBLEM = `${FOLDER}/lax.yaml:4:19: spec.approval.automatic: Forbidden: a policy in a repository can only restrict; set it in a PackagePolicy object`;

describe('policies of a repository', () => {
  let cli: CliFixture;
  let session: Session;
  let changes: PolicyChange[];

  const open = async () => {
    const folder = dataFolder(cli.data);
    session = await Session.open({ folder, actor: { name: 'anna' }, write: true, network: DEFAULT_NETWORK });
    changes = [];
    session.readers.repositoryPolicies.onChange((change) => changes.push(change));
  };
  beforeEach(async () => {
    cli = await cliFixture();
    await open();
    await register('apps');
    await register('guard', { [POLICIES_ANNOTATION]: FOLDER });
  });
  afterEach(async () => {
    await session.close();
    await cli[Symbol.asyncDispose]();
  });

  async function register(name: string, annotations: Record<string, string> = {}): Promise<void> {
    const spec = { git: { repo: cli.bare(`${name}.git`) } };
    await session.client.create(repositoryKind, { metadata: { name, annotations }, spec });
  }
  async function annotate(folder: string | undefined): Promise<void> {
    const object = await session.client.get(repositoryKind, { namespace: 'default', name: 'guard' });
    const annotations = folder === undefined ? {} : { [POLICIES_ANNOTATION]: folder };
    await session.client.update(repositoryKind, { ...object, metadata: { ...object.metadata, annotations } });
  }
  /** Pushes files of the folder to main, and has the session see it. */
  async function push(
    files: Record<string, string | null>,
    options: { links?: Record<string, string>; folder?: string } = {},
  ): Promise<string> {
    const { folder = FOLDER, links } = options;
    const git = await initRepository(`${cli.folder}/guard.git`);
    const inFolder = <T>(of: Record<string, T>) =>
      Object.fromEntries(Object.entries(of).map(([name, value]) => [`${folder}/${name}`, value]));
    const linked = links === undefined ? {} : { links: inFolder(links) };
    const commit = await commitFiles(git, inFolder(files), Date.now(), linked).finally(() => git.close());
    if (session.store.findRepository('default/guard') !== undefined) await session.store.repository('guard').sync();
    return commit;
  }
  /** The types that the policies require of a package of another repository, and what blocks its approval. */
  async function required() {
    await session.readers.refresh({ namespace: 'default', name: 'apps' });
    const subject = { key: { repository: 'apps', package: 'web', workspace: 'v1' }, path: 'web' };
    const { requiredGates, approvalRules } = policyOf(session.readers, subject as never, 'default');
    return {
      types: requiredGates.map(({ conditionType }) => conditionType).sort(),
      problems: approvalRules.flatMap(({ problem }) => problem?.message ?? []),
    };
  }
  async function report(name = 'guard') {
    const object = await session.client.get(repositoryKind, { namespace: 'default', name });
    return session.readers.repositoryPolicies.report(object);
  }

  test('count in all repositories of its namespace, and in no other namespace', async () => {
    const commit = await push({ 'strict.yaml': STRICT, 'team/later.yml': LATER, 'README.md': 'policies\n' });
    expect(await required()).toEqual({ types: ['signed', 'tested'], problems: [] });
    expect(await report()).toMatchObject({
      ...{ status: 'True', reason: 'Read' },
      message: `2 policies in ${FOLDER} at commit ${commit.slice(0, 10)}`,
      inForce: [
        {
          name: 'strict',
          file: `${FOLDER}/strict.yaml`,
          commit,
          spec: { requiredGates: [{ conditionType: 'tested' }] },
        },
        { name: 'later', file: `${FOLDER}/team/later.yml`, commit },
      ],
    });
    expect(session.readers.policiesIn('other')).toEqual([]);
    await annotate(undefined);
    expect(await required()).toEqual({ types: [], problems: [] });
    expect(await report()).toBeUndefined();
  });

  test('are in the status of the Repository without their text where aliases make them large', async () => {
    const names = Array.from({ length: 5000 }, (_, at) => `name-${at}`).join(', ');
    const labels = '{matchExpressions: [{key: name, operator: In, values: *all}]}';
    const large = `{selector: {packages: &all [${names}], repositories: *all, packageSelector: ${labels}}}`;
    await push({ 'one.yaml': policy('one', large) });
    expect((await report())?.inForce).toEqual([
      expect.objectContaining({ name: 'one', spec: expect.objectContaining({ selector: expect.any(Object) }) }),
    ]);
    const commit = await push({ 'two.yaml': policy('two', large) });
    expect((await report())?.inForce).toEqual([
      { name: 'one', file: `${FOLDER}/one.yaml`, commit },
      { name: 'two', file: `${FOLDER}/two.yaml`, commit },
    ]);
  });

  test('refuse what they forbid, with the name of the repository, the file and the commit', async () => {
    const commit = await push({
      'strict.yaml': policy('strict', '{approval: {soak: {proposed: 1h}}}'),
    });
    await session.repositories.open('default/apps');
    const wanted = { package: 'web', workspace: 'v1', source: { type: 'init' } } as const;
    const { name } = await session.store.create('apps', wanted, session.context());
    await session.store.update(name, { action: 'propose' }, session.context());
    const origin = `strict of Repository guard (${FOLDER}/strict.yaml at ${commit.slice(0, 10)})`;
    await expect(session.store.update(name, { action: 'approve' }, session.context())).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringMatching(
        new RegExp(
          `policy ${origin.replace(/[()./]/g, '\\$&')} requires that .*; it is resolved by users who may push to branch main of Repository guard, which has ${FOLDER}/strict\\.yaml$`,
        ),
      ),
    });
    await push({ 'strict.yaml': policy('strict', '{}') });
    await session.store.update(name, { action: 'approve' }, session.context());
    expect(session.store.get(name).lifecycle).toBe('Published');
  });

  test('stay in force when a commit makes them invalid, also after a restart', async () => {
    const good = (await push({ 'strict.yaml': STRICT })).slice(0, 10);
    expect((await required()).types).toEqual(['tested']);
    await push({ 'lax.yaml': LAX });
    await push({ 'strict.yaml': null });
    const invalid = {
      ...{ status: 'False', reason: 'Invalid' },
      message: `${LAX_PROBLEM}; those of commit ${good} stay in force`,
    };
    expect(await required()).toEqual({ types: ['tested'], problems: [] });
    expect(await report()).toMatchObject(invalid);
    await session.close();
    await open();
    expect(await required()).toEqual({ types: ['tested'], problems: [] });
    expect(await report()).toMatchObject(invalid);
    await push({ 'lax.yaml': LATER });
    expect(await required()).toEqual({ types: ['signed'], problems: [] });
  });

  test('permit no approval as long as none are known', async () => {
    const blocked = (cause: string) => ({
      types: [],
      problems: [
        `no approval is permitted in namespace default, since the policies of Repository guard are not known: ${cause}`,
      ],
    });
    const missing = `${FOLDER}: there is no such folder on branch main`;
    expect(await required()).toEqual(blocked(missing));
    await push({ 'lax.yaml': LAX });
    expect(await required()).toEqual(blocked(LAX_PROBLEM));
    expect(await report()).toMatchObject({
      message: `${LAX_PROBLEM}; no approval is permitted in namespace default until they are valid`,
    });
    await push({ 'lax.yaml': null, 'strict.yaml': STRICT });
    expect(await required()).toEqual({ types: ['tested'], problems: [] });
    // A missing folder withdraws nothing; removing the annotation does.
    await push({ 'strict.yaml': null });
    expect(await required()).toEqual({ types: ['tested'], problems: [] });
  });

  test('permit no approval while the repository cannot be opened', async () => {
    await session.close();
    cli.git('guard.git', 'update-ref', '-d', 'refs/heads/main');
    await open();
    const { types, problems } = await required();
    expect(types).toEqual([]);
    expect(problems).toEqual([expect.stringContaining('the policies of Repository guard are not known: ')]);
  });

  test.each([
    ['a symbolic link', { links: { 'other.yaml': '../../secret.yaml' } }, 'other.yaml: a symbolic link is not read'],
    ['a link under another name', { links: { docs: '/etc' } }, 'docs: a symbolic link is not read'],
    ['a name with control characters', { files: { 'a\u001b[2J.yaml': STRICT } }, '"a\\u001b[2J.yaml": use letters'],
    [
      'too many files',
      { files: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`${at}.yaml`, ''])) },
      'there are 52 files, at most 50 are read',
    ],
    ['too many bytes', { files: { 'a.yaml': `# ${'x'.repeat(140_000)}` } }, 'at most 131072 are read'],
  ])(
    'are refused with %s',
    async (_what, wrong: { files?: Record<string, string>; links?: Record<string, string> }, message) => {
      await push({ 'strict.yaml': STRICT, ...wrong.files }, wrong.links === undefined ? {} : { links: wrong.links });
      expect((await required()).problems).toEqual([expect.stringContaining(message)]);
    },
  );

  test('a folder that is a link, or that leaves the repository, is refused', async () => {
    await push({ 'strict.yaml': STRICT }, { folder: 'real', links: {} });
    const git = await initRepository(`${cli.folder}/guard.git`);
    await commitFiles(git, {}, Date.now(), { links: { governance: 'real' } }).finally(() => git.close());
    expect((await required()).problems).toEqual([expect.stringContaining('there is no such folder on branch main')]);
    for (const folder of ['../other', '/etc', '.git', 'a/../b', '', '.'])
      await expect(annotate(folder)).rejects.toMatchObject({
        code: 'InvalidInput',
        message: expect.stringContaining('must be the path of a folder'),
      });
  });

  test('announce what changed, and nothing when other files change', async () => {
    await push({ 'strict.yaml': STRICT });
    await required();
    expect(changes.at(-1)).toEqual({ namespace: 'default', policies: undefined });
    changes.length = 0;
    await push({ 'unrelated.md': 'x\n' }, { folder: 'docs' });
    await required();
    expect(changes).toEqual([]);
    await push({ 'strict.yaml': LATER });
    await required();
    expect(changes[0]?.policies?.map(({ metadata }) => metadata.name.split(' ', 1)[0])).toEqual(['strict', 'later']);
    await annotate(undefined);
    await required();
    expect(changes[1]).toEqual({ namespace: 'default', policies: undefined });
  });

  test('a namespace has a bounded number of such repositories, of which the oldest count', async () => {
    await push({ 'strict.yaml': STRICT });
    for (let at = 0; at < MAX_REPOSITORIES_PER_NAMESPACE; at += 1)
      await session.client.create(repositoryKind, {
        metadata: { name: `more-${at + 10}`, annotations: { [POLICIES_ANNOTATION]: 'p' } },
        spec: { git: { repo: `${cli.folder}/none-${at}.git` } },
      });
    const { types, problems } = await required();
    expect(types).toEqual(['tested']);
    expect(problems).toHaveLength(MAX_REPOSITORIES_PER_NAMESPACE);
    expect(problems.filter((problem) => problem.includes('more than 16 Repositories'))).toHaveLength(1);
  });
});
