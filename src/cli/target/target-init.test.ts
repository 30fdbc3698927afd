import { existsSync, globSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { load, loadAll } from 'js-yaml';
import { describe, expect, test } from 'vitest';
import { skipFor } from '../../../test/support/skip.ts';
import type { StructuralSchema } from '../../resource/schema/structural/structural-schema.ts';
import { validateValue } from '../../resource/schema/structural/validate-value.ts';
import { cliFixture, runCli } from '../testing.ts';

const FLAGS = [
  '--name',
  'edge-east',
  '--repo',
  'https://git.example.com/edge-east.git',
  '--directory',
  '/clusters/edge-east',
];

interface Printed {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly annotations?: object };
  readonly spec: Record<string, unknown>;
}

async function init(...words: string[]): Promise<Printed[]> {
  const { code, stdout, stderr } = await runCli(['target', 'init', ...words]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return loadAll(stdout) as Printed[];
}

test('an ApplicationSet makes an Application of each package folder', async () => {
  const [set, ...others] = await init('argocd', ...FLAGS, '--wave', '3', '--destination', 'east');
  expect(others).toEqual([]);
  expect(set).toMatchObject({
    ...{ apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet' },
    metadata: { name: 'edge-east', namespace: 'argocd', annotations: { 'argocd.argoproj.io/sync-wave': '3' } },
    spec: {
      generators: [{ git: { revision: 'main', files: [{ path: 'clusters/edge-east/**/kustomization.yaml' }] } }],
      template: {
        metadata: {
          // The engine's suite shows that names are unique.
          name: expect.stringMatching(/trimPrefix "clusters\/edge-east\/".*}}edge-east-{{ \$name }}.*sha256sum/),
          finalizers: ['resources-finalizer.argocd.argoproj.io'],
        },
        spec: {
          destination: { name: 'east' },
          syncPolicy: { automated: { prune: true, selfHeal: true, allowEmpty: false } },
        },
      },
    },
  });
  const [flat] = await init('argocd', ...FLAGS, '--no-nested', '--no-prune');
  expect(flat?.spec).toMatchObject({
    generators: [{ git: { directories: [{ path: 'clusters/edge-east/*' }] } }],
    syncPolicy: { preserveResourcesOnDeletion: true, applicationsSync: 'create-update' },
    template: { spec: { syncPolicy: { automated: { prune: false } } } },
  });
  expect(JSON.stringify(flat)).not.toContain('finalizers');
});

test('Flux gets one GitRepository and one Kustomization', async () => {
  const words = ['--secret', 'git', '--depends-on', 'infra', '--depends-on', 'crds', '--cluster-secret', 'east'];
  const [source, kustomization] = await init('flux', ...FLAGS, ...words);
  expect(source).toMatchObject({
    ...{ kind: 'GitRepository', metadata: { name: 'edge-east', namespace: 'flux-system' } },
    spec: { ref: { branch: 'main' }, secretRef: { name: 'git' }, sparseCheckout: ['clusters/edge-east'] },
  });
  expect(kustomization).toMatchObject({
    kind: 'Kustomization',
    spec: {
      ...{ path: './clusters/edge-east', prune: true, wait: true },
      dependsOn: [{ name: 'infra' }, { name: 'crds' }],
      kubeConfig: { secretRef: { name: 'east' } },
    },
  });
});

test('the settings of a target are used, and options override them', async () => {
  await using cli = await cliFixture();
  const config = join(cli.folder, 'target.yaml');
  const site = cli.bare('site.git');
  await writeFile(
    config,
    `apiVersion: sluice.dev/v1alpha1\nkind: DeliveryTarget\nmetadata: {name: east}\nspec: {selector: {}, onRemoval: empty, git: {repo: ${site}, branch: live, directory: /a/, secretRef: {name: east-git}}}\n`,
  );
  await cli.run('up', '--config', config, '--no-listen', '--until-idle', '--disable', 'delivery');
  const printed = await cli.run('target', 'init', 'flux', '--target', 'east', '-o', 'json');
  expect(printed.stderr).toContain(`a cluster cannot read ${site}; name the address`);
  const { items } = JSON.parse(printed.stdout) as { readonly items: readonly Printed[] };
  expect(items).toMatchObject([
    { metadata: { name: 'east' }, spec: { url: site, ref: { branch: 'live' }, secretRef: { name: 'east-git' } } },
    { spec: { path: './a' } },
  ]);
  const repo = 'https://git.example.com/east.git';
  const argo = await cli.run('target', 'init', 'argocd', '--target', 'east', '--repo', repo);
  expect(argo.stderr).toBe('');
  const [set] = loadAll(argo.stdout) as Printed[];
  expect(JSON.stringify(set)).toContain('"allowEmpty":true');
  expect(await cli.run('target', 'init', 'argocd', '--target', 'west')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"west" not found'),
  });
});

test('without a target and without an address nothing is printed', async () => {
  expect(await runCli(['target', 'init', 'flux'])).toMatchObject({
    ...{ code: 2, stdout: '' },
    stderr: expect.stringContaining('name a target with --target, or give its --name and --repo'),
  });
  const wrong = await runCli(['target', 'init', 'flux', '--name', 'Edge East', '--repo', 'https://a.example/b.git']);
  expect(wrong.stderr).toContain('cannot name the objects of an engine');
  expect((await runCli(['target', 'init', 'fleet'])).code).toBe(2);
});

describe('with the definitions of the engines', () => {
  const cache = process.env.GOMODCACHE ?? join(homedir(), 'go/pkg/mod');
  const definitions = {
    ApplicationSet: 'github.com/argoproj/argo-cd/v3@*/manifests/crds/applicationset-crd.yaml',
    GitRepository: 'github.com/fluxcd/source-controller@*/config/crd/bases/*_gitrepositories.yaml',
    Kustomization: 'github.com/fluxcd/kustomize-controller@*/config/crd/bases/*_kustomizations.yaml',
  };

  const missing = Object.values(definitions).some((pattern) => globSync(pattern, { cwd: cache }).length === 0);
  const skip = skipFor(missing && `the Go modules of Argo CD and Flux are not in ${cache}`);

  test.each(Object.entries(definitions))('a %s is valid', skip, async (kind, pattern) => {
    const [file] = existsSync(cache) ? globSync(pattern, { cwd: cache }).sort().reverse() : [];
    const engine = kind === 'ApplicationSet' ? 'argocd' : 'flux';
    const more = engine === 'flux' ? ['--secret', 'git', '--depends-on', 'infra', '--cluster-secret', 'east'] : [];
    for (const words of [more, [...more, '--no-nested'], [...more, '--no-prune']]) {
      const object = (await init(engine, ...FLAGS, ...words)).find((one) => one.kind === kind);
      const { schema, version } = schemaOf(join(cache, file ?? ''), object as unknown as { apiVersion: string });
      expect((object as unknown as { apiVersion: string }).apiVersion).toContain(version);
      expect(validateValue(schema, object).causes, JSON.stringify(words)).toEqual([]);
      expect(unknownFields(schema, object)).toEqual([]);
    }
  });
});

function schemaOf(file: string, { apiVersion }: { readonly apiVersion: string }) {
  const { spec } = load(readFileSync(file, 'utf8')) as {
    readonly spec: {
      readonly versions: readonly {
        readonly name: string;
        readonly schema: { readonly openAPIV3Schema: StructuralSchema };
      }[];
    };
  };
  const version = spec.versions.find(({ name }) => apiVersion.endsWith(`/${name}`));
  if (version === undefined) throw new Error(`${file} has no ${apiVersion}`);
  return { version: version.name, schema: version.schema.openAPIV3Schema };
}

/** Paths of fields that a server would drop. */
function unknownFields(schema: StructuralSchema, value: unknown, path = ''): string[] {
  if (Array.isArray(value))
    return value.flatMap((item, at) =>
      schema.items === undefined ? [] : unknownFields(schema.items, item, `${path}[${at}]`),
    );
  if (typeof value !== 'object' || value === null) return [];
  const { properties, additionalProperties } = schema;
  return Object.entries(value).flatMap(([key, field]) => {
    if (path === '' && ['apiVersion', 'kind', 'metadata'].includes(key)) return [];
    const inner = properties?.[key] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (inner !== undefined) return unknownFields(inner, field, `${path}.${key}`);
    const isOpen =
      additionalProperties === true ||
      (schema as Record<string, unknown>)['x-kubernetes-preserve-unknown-fields'] === true;
    return isOpen ? [] : [`${path}.${key}`];
  });
}
