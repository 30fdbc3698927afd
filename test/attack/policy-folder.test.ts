import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { Session } from '../../src/app/session/session.ts';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { POLICIES_ANNOTATION, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { commitFiles } from '../support/scratch-repository.ts';

const user = (name: string, mayApprove: boolean, namespaces: readonly string[]): RequestContext => ({
  ...{ actor: { name }, face: 'api', mayApprove: async () => mayApprove },
  mayChangePolicies: async (namespace) => namespaces.includes(namespace),
});
const EDITOR = user('edi', false, []);
const APPROVER = user('ben', true, ['elsewhere']);
const ADMIN = user('ada', true, ['default']);
const CONTROLLER: RequestContext = { actor: { name: 'controller:approval' }, face: 'controller' };
/** A review or a comment on the host, whose author has shown no other right. */
const REVIEWER: RequestContext = { actor: { name: 'rita' }, face: 'api' };
const FOLDER = 'governance/policies';
const STRICT = `apiVersion: sluice.dev/v1alpha1
kind: PackagePolicy
metadata: {name: strict}
spec: {selector: {packages: [web]}, approval: {quorum: {required: 2}}}
`;
const REFUSED =
  /folder governance\/policies with the policies of Repository default\/guard: only a user who may update packagepolicies in namespace default may/;

describe('policies of a repository are not withdrawn by a package', () => {
  let cli: CliFixture;
  let session: Session;
  beforeEach(async () => {
    cli = await cliFixture();
    const repo = cli.bare('guard.git');
    const git = await initRepository(`${cli.folder}/guard.git`);
    await commitFiles(git, { [`${FOLDER}/strict.yaml`]: STRICT }, Date.now(), {}).finally(() => git.close());
    const folder = dataFolder(cli.data);
    session = await Session.open({ folder, actor: { name: 'ada' }, write: true, network: DEFAULT_NETWORK });
    const { client } = session;
    const annotations = { [POLICIES_ANNOTATION]: FOLDER };
    await client.create(repositoryKind, { metadata: { name: 'guard', annotations }, spec: { git: { repo } } });
    const spec = { selector: {}, autoPropose: true, approval: { automatic: true } };
    await client.create(packagePolicyKind, { metadata: { name: 'auto' }, spec });
    await session.store.reach('default/guard');
  });
  afterEach(async () => {
    await session.close();
    await cli[Symbol.asyncDispose]();
  });

  const storage = () => session.registry.storage(packageRevisionKind);
  const create = async (context: RequestContext, packageName: string, repository = 'guard') => {
    const made = await storage().create(context, {
      ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision' },
      metadata: { name: '', namespace: 'default' },
      spec: {
        ...{ repository, packageName, workspaceName: 'v1', lifecycle: 'Draft' },
        tasks: [{ type: 'init', init: { description: 'x' } }],
      },
    });
    return made.metadata.name;
  };
  const get = (name: string) => storage().get(ADMIN, { namespace: 'default', name });
  const propose = async (context: RequestContext, name: string) => {
    const stored = await get(name);
    await storage().update(context, { ...stored, spec: { ...stored.spec, lifecycle: 'Proposed' } });
  };
  const approve = async (context: RequestContext, name: string) => {
    const stored = await get(name);
    const published = { ...stored, spec: { ...stored.spec, lifecycle: 'Published' as const } };
    await storage().updateSubResource?.(context, 'approval', published);
  };

  test.each([
    ['guard', FOLDER],
    ['guard', 'governance'],
    ['guard', `${FOLDER}/more`],
    // The same branch by another registration, whose packages begin in another folder.
    ['again', 'policies'],
  ])('that is created in its folder, above or below it: in %s, %s', async (repository, name) => {
    if (repository === 'again') {
      const key = { namespace: 'default', name: 'guard' };
      const guard = await session.client.get(repositoryKind, key);
      const of = (directory: string) => ({ git: { repo: guard.spec.git?.repo ?? '', directory } });
      await session.client.delete(repositoryKind, key);
      const { annotations = {} } = guard.metadata;
      await session.client.create(repositoryKind, { metadata: { name: 'guard', annotations }, spec: of('/apps') });
      await session.client.create(repositoryKind, { metadata: { name: 'again' }, spec: of('/governance') });
      await session.store.reach('default/again');
      await session.readers.refresh({ namespace: 'default', name: 'again' });
    }
    for (const context of [EDITOR, APPROVER, CONTROLLER, REVIEWER])
      await expect(create(context, name, repository), context.actor.name).rejects.toThrow(REFUSED);
    expect(await create(ADMIN, name, repository)).toBe(`${repository}.${name.replaceAll('/', '.')}.v1`);
  });

  test('that was pushed or created before, nor by a controller', async () => {
    const name = await create(ADMIN, `${FOLDER}/more`);
    const { policy } = await session.store.evaluate(`default/${name}`);
    expect(policy).toMatchObject({ automatic: [], autoPropose: false });
    for (const context of [EDITOR, APPROVER, CONTROLLER, REVIEWER])
      await expect(propose(context, name), context.actor.name).rejects.toThrow(REFUSED);
    await propose(ADMIN, name);
    for (const context of [APPROVER, CONTROLLER, REVIEWER])
      await expect(approve(context, name), context.actor.name).rejects.toThrow(REFUSED);
    await approve(ADMIN, name);
    expect((await get(name)).spec.lifecycle).toBe('Published');
  });

  test('while other packages are approved as before', async () => {
    for (const other of ['governance/other', 'governance/policies-more', 'web']) {
      const name = await create(EDITOR, other);
      const { policy } = await session.store.evaluate(`default/${name}`);
      expect(policy).toMatchObject({ automatic: ['auto'], autoPropose: true, policyFolders: [] });
      await propose(EDITOR, name);
    }
    await approve(CONTROLLER, 'guard.governance.other.v1');
  });
});
