import { expect, test } from 'vitest';
import { enableGcpServices } from './enable-gcp-services.ts';
import { runFunction } from './support/testing.ts';

const set = (services: string, more = '', annotations = '    config.kubernetes.io/local-config: "true"\n') =>
  `apiVersion: blueprints.cloud.google.com/v1alpha1\nkind: ProjectServiceSet\nmetadata:\n  name: project-services\n${more}  annotations:\n${annotations}spec:\n  services:\n${services}  projectID: test\n`;
const service = (name: string, more = '', annotations = '') =>
  `apiVersion: serviceusage.cnrm.cloud.google.com/v1beta1\nkind: Service\nmetadata:\n  name: project-services-${name}\n${more}  annotations:\n${annotations}    blueprints.cloud.google.com/ownerReference: blueprints.cloud.google.com/ProjectServiceSet/project-services\nspec:\n  resourceID: ${name}.googleapis.com\n  projectRef:\n    external: test\n`;
const COMPUTE = '    - compute.googleapis.com\n';

test('makes a Service of each API beside the set, with its namespace and annotations, and no others the second time', async () => {
  const annotations =
    '    cnrm.cloud.google.com/disable-dependent-services: "false"\n    config.kubernetes.io/local-config: "true"\n';
  const given = set(`${COMPUTE}    - redis.googleapis.com\n`, '  namespace: foo\n', annotations);
  const { files, messages } = await runFunction(enableGcpServices, { 'gcp/ps.yaml': given });
  const own = '    cnrm.cloud.google.com/disable-dependent-services: "false"\n';
  expect(files).toEqual({
    'gcp/ps.yaml': given,
    'gcp/foo/service_project-services-compute.yaml': service('compute', '  namespace: foo\n', own),
    'gcp/foo/service_project-services-redis.yaml': service('redis', '  namespace: foo\n', own),
  });
  expect(messages).toEqual(['info: generated service', 'info: generated service']);
  const again = await runFunction(enableGcpServices, files);
  expect(again.files).toEqual(files);
  expect(again.messages).toEqual(['info: recreated service', 'info: recreated service']);
});

test('removes the Services that a set made and does not list any more, and leaves all others alone', async () => {
  const other = service('other').replaceAll('ProjectServiceSet/project-services', 'ProjectServiceSet/another');
  const before = {
    'ps.yaml': set(COMPUTE, '', '    team: net\n'),
    'service_project-services-compute.yaml': service('compute').replace('external: test', 'external: by-hand # why'),
    'bq.yaml': service('bigquery'),
    'other.yaml': other,
  };
  const { files, results } = await runFunction(enableGcpServices, before);
  expect(files).toEqual({
    'ps.yaml': set(COMPUTE, '', '    team: net\n    config.kubernetes.io/local-config: "true"\n'),
    'service_project-services-compute.yaml': service('compute', '', '')
      .replace('external: test', 'external: test # why')
      .replace('\nspec:', '\n    team: net\nspec:'),
    'other.yaml': other,
  });
  expect(results).toMatchObject([
    { message: 'recreated service', file: { path: 'service_project-services-compute.yaml' } },
    { message: 'pruned service', resourceRef: { name: 'project-services-bigquery' }, file: { path: 'bq.yaml' } },
  ]);
});

test.each([
  ['    []\n', 'at least one service must be specified under `spec.services[]`'],
  ['    - compute\n', 'invalid service specified: compute'],
  ['    - ../../a.googleapis.com\n', 'invalid service specified: ../../a.googleapis.com'],
])('refuses the services %j', async (services, message) => {
  const { messages } = await runFunction(enableGcpServices, set(services));
  expect(messages).toEqual([`error: failed to add services: ${message}`]);
});
