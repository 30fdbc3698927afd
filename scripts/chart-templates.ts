import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** The namespace of the manifests. Helm users choose the namespace of a release, so the templates must not contain a fixed one. */
const NAMESPACE = /\bsluice-system\b/g;

/** Files of the manifests that are no templates: a chart neither creates its namespace nor lists its files. */
const OMITTED = new Set(['kustomization.yaml', 'namespace.yaml']);

/** Templates that are written by hand: Helm prints these notes after an installation, for which no manifest has a place. */
export const HAND_WRITTEN: ReadonlySet<string> = new Set(['NOTES.txt']);

/** File name to text of the templates of the Helm chart, made of the manifests for kustomize in a folder. */
export function chartTemplates(deploy: string): ReadonlyMap<string, string> {
  const files = ['base', 'overlays/ha', 'components/*'].flatMap((folder) =>
    globSync(`${folder}/*.yaml`, { cwd: deploy }),
  );
  const templates = files
    .filter((file) => !OMITTED.has(basename(file)))
    .map((file) => [basename(file), chartTemplate(file, readFileSync(join(deploy, file), 'utf8'))] as const);
  const definitions = globSync('crds/*.yaml', { cwd: deploy })
    .filter((file) => !OMITTED.has(basename(file)))
    .map((file) => [`crd-${basename(file)}`, definitionTemplate(readFileSync(join(deploy, file), 'utf8'))] as const);
  return new Map([...templates, ...definitions].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * The template of a manifest. Comments in the manifest say what values replace:
 *
 * - `key: value # chart: <template>` has the template as its value in the chart; lines below that are indented further are a part of the value.
 * - `# chart-if: <condition>` in any line is the condition for the whole file.
 */
export function chartTemplate(file: string, manifest: string): string {
  const lines: string[] = [];
  let condition: string | undefined;
  /** Column of the key whose value is replaced, while the lines of the value are read. */
  let replaced = Number.POSITIVE_INFINITY;
  for (const line of manifest.trimEnd().split('\n')) {
    const isBlank = line.trim() === '';
    if (replaced !== Number.POSITIVE_INFINITY && (isBlank || line.search(/\S/) > replaced)) continue;
    replaced = Number.POSITIVE_INFINITY;
    const [, content = line, , keyword, expression = ''] = /^(.*?)( # chart(-if)?: (.*))$/.exec(line) ?? [];
    if (keyword === '-if') condition = expression;
    if (expression === '' || keyword === '-if') {
      lines.push(escapeBraces(content).replaceAll(NAMESPACE, '{{ .Release.Namespace }}'));
      continue;
    }
    const [, key = ''] = /^(\s*(?:- )?[\w-]+:)/.exec(content) ?? [];
    // Templates that end with a line break of their own begin with `{{-`.
    lines.push(`${key}${expression.startsWith('{{-') ? '' : ' '}${expression}`);
    replaced = key.search(/[^\s-]/);
  }
  const head = `{{- /* Written by "npm run chart" from deploy/${file}; do not edit. */}}`;
  return conditional(condition, [head, ...lines]);
}

/** The template of a CustomResourceDefinition: uninstalling the chart keeps the definition, since the objects of users end with it. */
function definitionTemplate(manifest: string): string {
  const keep = '  annotations:\n    helm.sh/resource-policy: keep\n';
  return conditional('.Values.definitions.install', [
    escapeBraces(manifest.replace(/^metadata:\n {2}name: .*\n/m, (head) => head + keep)).trimEnd(),
  ]);
}

function conditional(condition: string | undefined, lines: readonly string[]): string {
  const all = condition === undefined ? lines : [`{{- if ${condition} }}`, ...lines, '{{- end }}'];
  return `${all.join('\n')}\n`;
}

/** So that Helm leaves templates of Prometheus as they are. */
function escapeBraces(text: string): string {
  return text.replaceAll(/\{\{|\}\}/g, '{{ "$&" }}');
}
