import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { load, loadAll } from 'js-yaml';
import { expect, test } from 'vitest';
import { BOOTSTRAP_ROLES } from '../src/server/authorization/bootstrap-objects.ts';
import type { ClusterRole } from '../src/server/authorization/rbac-objects.ts';
import { chartTemplate, chartTemplates, HAND_WRITTEN } from './chart-templates.ts';

const DEPLOY = fileURLToPath(new URL('../deploy/', import.meta.url));
const read = (path: string) => readFileSync(new URL(path, `file://${DEPLOY}`), 'utf8');

test('the templates of the chart are current; "npm run chart" regenerates them', () => {
  const files = chartTemplates(DEPLOY);
  expect(readdirSync(`${DEPLOY}chart/templates`).sort()).toEqual([...files.keys(), ...HAND_WRITTEN].sort());
  for (const [name, text] of files) expect(read(`chart/templates/${name}`), name).toBe(text);
});

test('comments in a manifest say what values replace', () => {
  const manifest = [
    ...['kind: Thing # chart-if: .Values.thing.enabled', 'metadata:', '  namespace: sluice-system'],
    ...[
      'spec:',
      '  - image: a:1 # chart: {{ .Values.image }}',
      '    limits: # chart: {{- toYaml .Values.limits | nindent 6 }}',
    ],
    ...['      memory: 1Gi', '', '      cpu: 1', '    text: "{{ $value }}" # a comment'],
  ];
  expect(chartTemplate('thing.yaml', manifest.join('\n')).split('\n')).toEqual([
    '{{- if .Values.thing.enabled }}',
    '{{- /* Written by "npm run chart" from deploy/thing.yaml; do not edit. */}}',
    ...['kind: Thing', 'metadata:', '  namespace: {{ .Release.Namespace }}'],
    ...['spec:', '  - image: {{ .Values.image }}', '    limits:{{- toYaml .Values.limits | nindent 6 }}'],
    ...['    text: "{{ "{{" }} $value {{ "}}" }}" # a comment', '{{- end }}', ''],
  ]);
});

test('image, chart and package have the same version', () => {
  const { version } = JSON.parse(read('../package.json')) as { version: string };
  expect(load(read('chart/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(read('base/deployment.yaml')).toContain(`image: ghcr.io/sluice-dev/sluice:${version} #`);
});

test('users have the rights in a cluster that they have on a server of Sluice', () => {
  const roles = loadAll(read('base/user-roles.yaml')) as ClusterRole[];
  const grants = (names: readonly string[]) => grantsOf(roles.filter(({ metadata }) => names.includes(metadata.name)));
  const own = (name: string) => grantsOf(BOOTSTRAP_ROLES.filter(({ metadata }) => metadata.name === name));
  const isOfSluice = (grant: string) => /^(\w+\.)*(kpt|sluice)\.dev |^(ipam|infra)\./.test(grant);
  expect(grants(['sluice-view'])).toEqual(own('view').filter(isOfSluice));
  expect(grants(['sluice-view', 'sluice-edit'])).toEqual(own('edit').filter(isOfSluice));
  expect(grants(['sluice-view', 'sluice-edit', 'sluice-admin'])).toEqual(own('admin').filter(isOfSluice));
  expect(grants(['sluice-approver'])).toEqual(own('sluice:approver'));
});

/** `group resource verb` of everything that roles allow. */
function grantsOf(roles: readonly ClusterRole[]): string[] {
  const rules = roles.flatMap((role) => role.rules ?? []);
  const grants = rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${group} ${resource} ${verb}`))),
  );
  return [...new Set(grants)].sort();
}
