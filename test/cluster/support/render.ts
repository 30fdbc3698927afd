import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load, loadAll } from 'js-yaml';
import type { KubeObject } from '../../support/api/kube-api.ts';
import type { ClusterPrograms } from './programs.ts';

const run = promisify(execFile);
const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url));
const MAX_OUTPUT_BYTES = 1 << 26;

/** The objects of a folder with a kustomization, by default of one in `deploy`, in the order in which they are created. */
export async function kustomize(programs: ClusterPrograms, folder: string): Promise<readonly KubeObject[]> {
  const options = { cwd: DEPLOY, maxBuffer: MAX_OUTPUT_BYTES };
  const { stdout } = await run(programs.pathOf('kustomize'), ['build', folder], options);
  return objectsIn(stdout);
}

/** The objects of the Helm chart, as a release in a namespace has them. Rejects with the output of Helm for values that it refuses. */
export async function renderChart(
  helm: string,
  values: readonly string[],
  namespace = 'sluice-system',
): Promise<readonly KubeObject[]> {
  const set = values.flatMap((value) => ['--set', value]);
  const release = ['template', 'sluice', 'chart', '--namespace', namespace, '--kube-version', 'v1.36.0'];
  const { stdout } = await run(helm, [...release, ...set], { cwd: DEPLOY, maxBuffer: MAX_OUTPUT_BYTES });
  return objectsIn(stdout);
}

/**
 * What Helm prints after an installation of the chart. `helm template` leaves it out, and `helm install --dry-run` needs a cluster, so a copy
 * of the chart gets a template that includes it.
 */
export async function renderNotes(
  helm: string,
  values: readonly string[],
  place: { readonly namespace: string; readonly folder: string },
): Promise<string> {
  const chart = join(place.folder, 'chart');
  cpSync(join(DEPLOY, 'chart'), chart, { recursive: true });
  const template = join('templates', 'printed-notes.yaml');
  writeFileSync(join(chart, template), 'notes: {{ include "sluice/templates/NOTES.txt" . | toJson }}\n');
  const set = values.flatMap((value) => ['--set', value]);
  const release = ['template', 'sluice', chart, '--namespace', place.namespace, '--kube-version', 'v1.36.0'];
  const { stdout } = await run(helm, [...release, '--show-only', template, ...set]);
  return (load(stdout) as { readonly notes: string }).notes;
}

/** The objects of files in `deploy`, whose names are without the suffix. */
export function readManifests(...files: readonly string[]): readonly KubeObject[] {
  return files.flatMap((file) => objectsIn(readFileSync(join(DEPLOY, `${file}.yaml`), 'utf8')));
}

/** `kind namespace/name`. */
export function nameOf({ kind, metadata }: KubeObject): string {
  const { namespace } = metadata as { readonly namespace?: string };
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${metadata.name}`;
}

function objectsIn(text: string): readonly KubeObject[] {
  return (loadAll(text) as (KubeObject | null)[]).filter((object) => object !== null);
}
