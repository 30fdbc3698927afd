import type { MappingNode } from './yaml-tree.ts';

/** Where the fields of kpt.dev/v1alpha1 went in v1, as kpt's catalog function "fix" moves them. */
const FROM_V1ALPHA1: Readonly<Record<string, string>> = {
  packageMetadata:
    'packageMetadata becomes info (shortDescription is info.description, url info.site, email info.emails, tags info.keywords)',
  upstream: 'upstream.git keeps repo, directory and ref, its commit moves to upstreamLock.git',
  openAPI: 'setters of openAPI become a function apply-setters in pipeline.mutators, their values its configMap',
  functions: 'functions become entries of pipeline.mutators',
  dependencies: 'dependencies goes away: fetch each as a nested package',
  inventory: 'inventory stays as it is',
};

/** How to bring a Kptfile of an old version to v1; names the fields of this file that move. */
export function migrationAdvice(version: 'v1alpha1' | 'v1alpha2', root: MappingNode): string {
  const intro = `apiVersion kpt.dev/${version} is an old form that current kpt refuses, and its command kpt fix is gone.`;
  if (version === 'v1alpha2') {
    return `${intro} Set apiVersion: kpt.dev/v1. A function's inline config moves to a file that configPath names; other fields stay.`;
  }
  const moves = Object.entries(FROM_V1ALPHA1).filter(([field]) => root.entries.has(field));
  const advice = moves.map(([, move]) => `; ${move}`).join('');
  return `${intro} Set apiVersion: kpt.dev/v1${advice}.`;
}
