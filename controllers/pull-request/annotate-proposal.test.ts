import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { externalFunctions } from '../../src/function/external/external-functions.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { workerPipelineRunner } from '../../src/function/worker/worker-pipeline-runner.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { APP, GitHubServer } from '../../test/support/github/github-server.ts';
import { BERTA, eachProposals, type Proposals } from '../../test/support/proposal-bench.ts';

const FILES = {
  Kptfile: `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  validators:
    - image: cel-validation:v0.1
      configPath: rules.yaml
`,
  'rules.yaml': `apiVersion: fn.kpt.dev/v1alpha1
kind: CELValidator
metadata:
  name: rules
  annotations:
    config.kubernetes.io/local-config: "true"
validations:
  - expression: object.spec.replicas <= 5
    message: at most 5 replicas
`,
  'web.yaml': `# The second document.
apiVersion: v1
kind: Probe
metadata:
  name: none
spec:
  replicas: 1
---
apiVersion: v1
kind: Probe
metadata:
  name: web
spec:
  replicas: 9
`,
};

describe('annotations of proposals', () => {
  const open = eachProposals();
  let at: Proposals;
  let runner: ReturnType<typeof workerPipelineRunner>;
  let renderer: FunctionRenderer;
  beforeEach(() => {
    at = open();
    runner = workerPipelineRunner({
      external: externalFunctions({ programs: 'not here', containers: 'not here' }),
      concurrency: 1,
    });
    renderer = new FunctionRenderer({ runner, catalog: new Catalog(builtIns), rules: () => [] });
  });
  afterEach(() => runner.close());

  async function propose(repository = 'apps'): Promise<string> {
    await at.policy();
    const { name } = await at.world.draft(`${repository}/app/w1`, FILES);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    return name;
  }

  test('are at the lines of the repository that functions report about, and gone with the mistake', async () => {
    at.restart({ renderer });
    const name = await propose();
    await at.reconcile(name);
    const annotations = () => at.forge.checks.get(at.revision(name).commit)?.get('sluice/ready')?.annotations;
    expect(annotations()?.[0]).toMatchObject({ path: 'app/web.yaml', line: 9, level: 'failure' });
    expect(annotations()?.[0]?.message).toContain('at most 5 replicas');
    // The gates alone decide about the check.
    expect(at.forge.checksOf(at.revision(name).commit)).toEqual({ 'sluice/ready': 'success' });
    at.forge.calls.length = 0;
    await at.reconcile(name);
    expect(at.forge.calls).toEqual([]);
    await at.world.store.update(name, { action: 'reject' }, BERTA);
    const files = new Map([['web.yaml', Buffer.from(FILES['web.yaml'].replace('9', '3'))]]);
    await at.world.store.change(name, { files }, BERTA);
    await at.world.store.update(name, { action: 'propose' }, BERTA);
    at.restart({ renderer });
    await at.reconcile(name);
    expect(annotations()).toBeUndefined();
  });

  test('reach GitHub in the form of its API', async () => {
    const server = new GitHubServer();
    await server.listen();
    const repository = server.createRepository('acme', 'packages', ['acme']);
    const forge = new GitHubForge({
      ...{ api: server.api, owner: 'acme', name: 'packages', network: DEFAULT_NETWORK },
      ...{ credentials: async () => ({ app: { id: APP.id, privateKey: server.privateKey } }), tokenName: 'Secret a/b' },
    });
    try {
      at.restart({ renderer, openForge: () => forge });
      await at.world.register('hub', { repo: repository.gitDir });
      const name = await propose('hub');
      await at.reconcile(name);
      expect(await at.world.events(name)).toEqual([expect.stringMatching(/^PullRequestOpened/)]);
      const run = repository.runs.findLast((one) => one.commit === at.revision(name).commit);
      expect(run).toMatchObject({ name: 'sluice/ready' });
      expect(run?.annotations[0]).toMatchObject({ path: 'app/web.yaml', start_line: 9, annotation_level: 'failure' });
      expect(server.problems).toEqual([]);
    } finally {
      await forge.close();
      await server.close();
    }
  });
});
