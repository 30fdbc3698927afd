import { readdirSync, readFileSync } from 'node:fs';
import { dump } from 'js-yaml';
import { editKptfile } from '../kptfile-schema/index.ts';
import { packageRoot } from '../src/app/package-root.ts';

const SOURCE = new URL('examples/quickstart/packages/', packageRoot());
export const QUICKSTART_PACKAGES_FILE = new URL('examples/quickstart/5-packages.yaml', packageRoot());

const REPOSITORY = 'packages';
const WORKSPACE = 'v1';

/**
 * A draft comes into being empty, and its files come in a second request. Where a policy would propose it in between, a gate for one of
 * the files holds it back: the condition is added with the file that it concerns.
 */
const GATES: Readonly<Record<string, string>> = { 'web-shop': 'apps/v1.Deployment.storefront' };

const HEAD = `# The packages of the folder packages/ as objects for kubectl: each as a draft, and then its files. Made by \`npm run quickstart\`.
`;

/** The text of examples/quickstart/5-packages.yaml. */
export function quickstartPackages(): string {
  const names = readdirSync(SOURCE).sort();
  const objects = names.flatMap((name) => [revisionOf(name), resourcesOf(name)]);
  return HEAD + objects.map((object) => dump(object, { lineWidth: -1, noRefs: true })).join('---\n');
}

function place(name: string) {
  return { repository: REPOSITORY, packageName: name, workspaceName: WORKSPACE };
}

function revisionOf(name: string): object {
  const gate = GATES[name];
  return {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevision',
    metadata: { name: `${REPOSITORY}.${name}.${WORKSPACE}`, namespace: 'default' },
    spec: {
      ...place(name),
      ...(gate === undefined ? {} : { readinessGates: [{ conditionType: gate }] }),
      tasks: [{ type: 'init', init: { description: `The package ${name} of the quick start` } }],
    },
  };
}

function resourcesOf(name: string): object {
  const folder = new URL(`${name}/`, SOURCE);
  const files = readdirSync(folder).map((file) => [file, readFileSync(new URL(file, folder), 'utf8')] as const);
  return {
    apiVersion: 'porch.kpt.dev/v1alpha1',
    kind: 'PackageRevisionResources',
    metadata: { name: `${REPOSITORY}.${name}.${WORKSPACE}`, namespace: 'default' },
    spec: {
      ...place(name),
      resources: Object.fromEntries(files.map(([file, text]) => [file, file === 'Kptfile' ? gated(name, text) : text])),
    },
  };
}

function gated(name: string, kptfile: string): string {
  const type = GATES[name];
  if (type === undefined) return kptfile;
  const condition = { type, status: 'True', reason: 'Complete', message: 'all files are here' } as const;
  return editKptfile(kptfile, [
    { op: 'addGate', conditionType: type },
    { op: 'setCondition', condition },
  ]);
}
