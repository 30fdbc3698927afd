import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { KubeObject } from '../support/api/kube-api.ts';
import { buildGoProgram, HELM } from '../support/go-program.ts';
import { skipFor } from '../support/skip.ts';
import { type ClusterPrograms, clusterPrograms } from './support/programs.ts';
import { kustomize, nameOf, renderChart, renderNotes } from './support/render.ts';

const missing = inject('serverMissing');
const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** Where it was not built before. */
const MAX_BUILD_MS = 900_000;

describe('the Helm chart', skipFor(missing !== '' && missing), () => {
  let programs: ClusterPrograms;
  let helm: string;
  let folder: string;
  beforeAll(async () => {
    const built = await clusterPrograms(() => undefined);
    if ('missing' in built) throw new Error(built.missing);
    programs = built;
    const { path, missing: why } = await buildGoProgram(HELM);
    if (path === undefined) throw new Error(why);
    helm = path;
    folder = await mkdtemp(join(tmpdir(), 'sluice-chart-'));
  }, MAX_BUILD_MS);
  afterAll(() => rm(folder, { recursive: true }));

  /** The objects of an overlay with components. */
  async function overlayWith(overlay: string, ...components: string[]): Promise<readonly KubeObject[]> {
    const inDeploy = (path: string) => relative(folder, resolve(DEPLOY, path));
    const kustomization = {
      resources: [inDeploy(`overlays/${overlay}`)],
      components: components.map((name) => inDeploy(`components/${name}`)),
    };
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    return kustomize(programs, folder);
  }

  test.each<[string, () => Promise<readonly KubeObject[]>, string[]]>([
    ['minimal', () => overlayWith('minimal'), ['replicas=1']],
    ['ha', () => overlayWith('ha'), []],
    ['with-webhook', () => overlayWith('with-webhook'), ['webhook.enabled=true']],
    [
      'ha with all components',
      () => overlayWith('ha', 'webhook', 'monitoring', 'git-credentials-everywhere', 'read-back'),
      [
        ...['webhook.enabled=true', 'monitoring.enabled=true', 'gitCredentials.allNamespaces=true'],
        'readBack.enabled=true',
      ],
    ],
  ])('has the objects of %s', async (_name, overlay, values) => {
    const expected = (await overlay()).filter(({ kind }) => kind !== 'Namespace');
    const rendered = (await renderChart(helm, values)).map(withoutPolicy);
    expect(rendered.map(nameOf).sort()).toEqual(expected.map(nameOf).sort());
    const byName = new Map(rendered.map((object) => [nameOf(object), object]));
    for (const object of expected) expect(byName.get(nameOf(object)), nameOf(object)).toEqual(object);
  });

  test('puts values where they belong', async () => {
    const objects = await renderChart(
      helm,
      [
        ...['replicas=3', 'image.repository=registry.example.com/s', 'image.tag=v2', 'extraArgs={--log,text}'],
        ...['extraEnv[0].name=OTEL_SERVICE_NAME', 'extraEnv[0].value=sluice', 'diskBudget=16000'],
        ...['resources.limits.memory=3Gi', 'cacheSize=20Gi', 'networkPolicy.egressPorts={8443}'],
        ...['definitions.install=false', 'webhook.enabled=true', 'webhook.failurePolicy=Ignore'],
        ...['monitoring.enabled=true', 'monitoring.prometheus.namespace=metrics'],
      ],
      'elsewhere',
    );
    const one = (kind: string, name = 'sluice') =>
      objects.find((object) => object.kind === kind && object.metadata.name === name);
    expect(one('Deployment')).toMatchObject({
      metadata: { namespace: 'elsewhere' },
      spec: {
        replicas: 3,
        template: {
          spec: {
            containers: [
              {
                image: 'registry.example.com/s:v2',
                args: ['serve', '--disk-budget', '16000', '--log', 'text'],
                env: [{ name: 'POD_NAME' }, { name: 'POD_NAMESPACE' }, { name: 'OTEL_SERVICE_NAME', value: 'sluice' }],
                resources: { requests: { memory: '512Mi' }, limits: { memory: '3Gi' } },
              },
            ],
            volumes: [{ emptyDir: { sizeLimit: '20Gi' } }, {}],
          },
        },
      },
    });
    expect(one('NetworkPolicy')).toMatchObject({ spec: { egress: [{}, { ports: [{ port: 8443 }] }] } });
    expect(one('ValidatingWebhookConfiguration')).toMatchObject({
      webhooks: [{ failurePolicy: 'Ignore' }, { failurePolicy: 'Ignore' }],
    });
    expect(one('RoleBinding', 'sluice-discovery')).toMatchObject({ subjects: [{ namespace: 'metrics' }] });
    const reader = { name: 'sluice-metrics', namespace: 'elsewhere' };
    expect(one('ClusterRoleBinding', 'sluice-metrics-reader')).toMatchObject({ subjects: [reader] });
    expect(objects.some(({ kind }) => kind === 'CustomResourceDefinition')).toBe(false);
    const namespaces = objects.map(({ metadata }) => metadata.namespace).filter((name) => name !== undefined);
    expect(new Set(namespaces)).toEqual(new Set(['elsewhere', 'kube-system']));
    expect(JSON.stringify(objects)).not.toContain('sluice-system');
  });

  test('prints what to do next, in the namespace of the release and by the values', async () => {
    const notes = async (values: readonly string[]) =>
      (await renderNotes(helm, values, { namespace: 'elsewhere', folder })).trim();
    const plain = await notes([]);
    expect(plain).toContain('kubectl -n elsewhere rollout status deployment/sluice');
    expect(plain).toContain('--clusterrole=sluice-git-credentials --serviceaccount=elsewhere:sluice');
    expect(plain).toContain('set webhook.enabled=true');
    const complete = await notes(['webhook.enabled=true', 'gitCredentials.allNamespaces=true']);
    expect(complete).not.toMatch(/rolebinding|webhook/);
    expect(`${plain}${complete}`).not.toMatch(/sluice-system|\{\{|\n\n\n/);
  });

  test.each([
    ['replicas=0', '/replicas'],
    ['replica=2', "additional properties 'replica' not allowed"],
    ['cacheSize=much', '/cacheSize'],
    ['image.tag=v1\nprivileged: true', '/image/tag'],
    ['webhook.failurePolicy=Maybe', '/webhook/failurePolicy'],
  ])('refuses the value %s', async (value, why) => {
    await expect(renderChart(helm, [value])).rejects.toThrow(why);
  });
});

/** Without the annotation that keeps definitions when the chart is uninstalled. */
function withoutPolicy(object: KubeObject): KubeObject {
  if (object.kind !== 'CustomResourceDefinition') return object;
  const { annotations, ...metadata } = object.metadata;
  expect(annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
  return { ...object, metadata } as KubeObject;
}
