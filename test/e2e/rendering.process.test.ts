import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { editKptfile, type KptfileEdit } from '../../kptfile-schema/index.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { sluice } from '../support/cli.ts';
import { corpusMissing, corpusPackages } from '../support/corpus.ts';
import { pushDraft } from '../support/push-draft.ts';
import { type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { skipFor } from '../support/skip.ts';

const AUTO: KptfileEdit[] = [
  { op: 'setAnnotation', key: 'config.porch.kpt.dev/auto-lifecycle-mgmt', value: 'true' },
  { op: 'setAnnotation', key: 'approval.nephio.org/policy', value: 'initial' },
];
const SAMPLES = ['basens', 'cert-issuers', 'echo', 'external-secrets', 'ghost', 'ingress-nginx'];

/** Runs `sluice up` with a delivery target until it is idle. */
async function worldOf(scratch: Scratch, ...objects: string[]) {
  const edge = await initRepository(join(scratch.folder, 'edge.git'));
  await edge.close();
  const config = join(scratch.folder, 'conf');
  await mkdir(config);
  await writeFile(
    join(config, 'all.yaml'),
    [
      `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: { name: packages }\nspec: { type: git, git: { repo: "file://${scratch.path}" } }\n`,
      `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: { name: edge }\nspec: { selector: { repositories: [packages] }, allowSecrets: true, git: { repo: "file://${scratch.folder}/edge.git", createBranch: true } }\n`,
      'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: { name: kptfile-approvals }\nspec: { kptfileApprovals: true }\n',
      ...objects,
    ].join('---\n'),
  );
  const data = join(scratch.folder, 'data');
  return {
    data,
    up: async () => {
      const ran = await sluice(['up', '--data', data, '--config', config, '--until-idle'], { timeout: 120_000 });
      expect(ran.code, ran.stderr + ran.stdout).toBe(0);
      return ran.stdout;
    },
    refs: async () => (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n'),
    file: (revision: string, path: string) => scratch.git('show', `${revision}:${path}`),
    delivered: (path: string) => scratch.git('-C', '../edge.git', 'show', `main:${path}`),
    why: async (name: string) => (await sluice(['why', `packages.${name}.v1`, '--data', data])).stdout,
  };
}

const auto = (kptfile: string) => editKptfile(kptfile, AUTO);

describe('real pipelines', skipFor(corpusMissing), () => {
  test("kpt's samples are rendered, published and delivered; a value that only a user can provide is requested", async () => {
    await using scratch = await scratchRepository();
    const world = await worldOf(scratch);
    const packages = new Map(corpusPackages().map((pack) => [pack.name, pack.files]));
    for (const name of SAMPLES) {
      const files = new Map(packages.get(name));
      files.set('Kptfile', Buffer.from(auto(files.get('Kptfile')?.toString() ?? '')));
      await pushDraft(scratch, name, files);
    }
    // Ghost validates its host name outside of its blueprint.
    const blog = new Map(packages.get('ghost'));
    for (const [path, data] of blog) {
      if (path.endsWith('package-context.yaml'))
        blog.set(path, Buffer.from(data.toString().replace('name: example', 'name: blog')));
      if (path === 'Kptfile') blog.set(path, Buffer.from(auto(data.toString())));
    }
    await pushDraft(scratch, 'blog', blog);
    const output = await world.up();
    const refs = await world.refs();
    for (const name of SAMPLES) expect(refs, output).toContain(`refs/tags/${name}/v1`);
    expect(refs).not.toContain('refs/tags/blog/v1');
    const draft = 'refs/heads/drafts/blog/v1';
    expect(await world.file(draft, 'blog/Kptfile')).toMatch(
      /message: .*Blog's hostname must be specified in ingress-ghost\.yaml/,
    );
    expect(await world.why('blog')).toMatch(/could not be rendered: .*ingress-ghost\.yaml/);

    const ingress = (await world.file(draft, 'blog/ghost-app/ingress-ghost.yaml')).replace(
      'host: example.com',
      'host: blog.example.org',
    );
    await pushDraft(scratch, 'blog', new Map([['ghost-app/ingress-ghost.yaml', ingress]]));
    expect(await world.up()).toContain('blog');
    expect(await world.refs()).toContain('refs/tags/blog/v1');
    const deployment = await world.file('refs/tags/blog/v1', 'blog/ghost-app/deployment-ghost.yaml');
    expect(deployment).toContain('value: blog.example.org');
    expect(deployment).toContain('namespace: blog');
    const kptfile = await world.file('refs/tags/blog/v1', 'blog/Kptfile');
    expect(kptfile).toMatch(/- type: Rendered\n\s+status: "True"\n\s+reason: RenderSuccess$/m);
    // The rendered resources are delivered, without those that only functions read.
    const applied = await scratch.git('-C', '../edge.git', 'ls-tree', '-r', '--name-only', 'main');
    expect(applied).toContain('blog/ghost-app/deployment-ghost.yaml');
    expect(applied).not.toContain('fn-config');
    expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');

    // A second run changes no ref.
    const before = await scratch.git('for-each-ref');
    await world.up();
    expect(await scratch.git('for-each-ref')).toBe(before);
  });
});

const SPLIT = `apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: split
  annotations: { config.kubernetes.io/local-config: "true" }
replacements:
  - source: { kind: WorkloadCluster, fieldPath: spec.clusterName }
    targets:
      - select: { kind: NFDeployment }
        fieldPaths: [metadata.name]
        options: { delimiter: "-", index: 1 }
`;

test('a replacement that splits a cluster name with dashes in every round is stopped, with the reason', async () => {
  await using scratch = await scratchRepository();
  const world = await worldOf(scratch);
  const files = new Map([
    [
      'Kptfile',
      auto(
        'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf\npipeline:\n  mutators:\n    - image: apply-replacements:v0.1.1\n      configPath: split.yaml\n',
      ),
    ],
    ['split.yaml', SPLIT],
    [
      'cluster.yaml',
      'apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: c\nspec:\n  clusterName: edge-us-1\n',
    ],
    ['upf.yaml', 'apiVersion: workload.nephio.org/v1alpha1\nkind: NFDeployment\nmetadata:\n  name: upf-edge-us-1\n'],
  ]);
  await pushDraft(scratch, 'upf', files);
  const output = await world.up();
  const draft = 'refs/heads/drafts/upf/v1';
  const kptfile = await world.file(draft, 'upf/Kptfile');
  expect(kptfile, output).toContain('sluice.dev/PipelineSettled');
  expect(kptfile).toMatch(/upf\.yaml: -\s+name: upf-edge-us-1/);
  // One commit reports it, and the pushed files are unchanged.
  expect(await scratch.git('rev-list', '--count', `main..${draft}`)).toBe('2');
  expect(await world.file(draft, 'upf/upf.yaml')).toMatch(/name: upf-edge-us-1$/);
  expect(await world.why('upf')).toContain('the pipeline still changes the package after 3 rounds');
  const before = await scratch.git('for-each-ref');
  await world.up();
  expect(await scratch.git('for-each-ref')).toBe(before);
  // After a change of the content it runs again.
  await pushDraft(
    scratch,
    'upf',
    new Map([['split.yaml', SPLIT.replace('        options: { delimiter: "-", index: 1 }\n', '')]]),
  );
  await world.up();
  expect(await world.refs()).toContain('refs/tags/upf/v1');
  expect(await world.file('refs/tags/upf/v1', 'upf/upf.yaml')).toMatch(/name: edge-us-1$/);
  expect(await world.file('refs/tags/upf/v1', 'upf/Kptfile')).not.toContain('PipelineSettled');
});

test('a validator with its own condition closes its gate, names file and field, and opens it again', async () => {
  await using scratch = await scratchRepository();
  const world = await worldOf(
    scratch,
    'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: { name: valid }\nspec: { requiredGates: [{ conditionType: example.com/Valid }, { conditionType: Rendered }], validatorConditions: [{ function: kubeconform, conditionType: example.com/Valid }] }\n',
  );
  const service = (port: string) =>
    `apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n    - port: ${port}\n`;
  const kptfile =
    'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\npipeline:\n  validators:\n    - image: kubeconform:v0.1.1\n';
  await pushDraft(
    scratch,
    'web',
    new Map([
      ['Kptfile', auto(kptfile)],
      ['service.yaml', service('"http"')],
    ]),
  );
  await pushDraft(scratch, 'plain', new Map([['Kptfile', kptfile.replace(/pipeline:[\s\S]*/, '')]]));
  await world.up();
  const draft = await world.file('refs/heads/drafts/web/v1', 'web/Kptfile');
  expect(draft).toMatch(/type: example\.com\/Valid\n\s+status: "False"\n\s+reason: ValidationFailed/);
  expect(draft).toMatch(/service\.yaml: Service web: .*port/);
  expect(await world.file('refs/heads/drafts/plain/v1', 'plain/Kptfile')).toMatch(/type: Rendered\n\s+status: "True"/);
  expect(draft).toMatch(/type: Rendered\n\s+status: "True"/);
  expect(await world.why('web')).toMatch(/settled by +the package's pipeline/);
  await pushDraft(scratch, 'web', new Map([['service.yaml', service('80')]]));
  await world.up();
  expect(await world.refs()).toContain('refs/tags/web/v1');
});
