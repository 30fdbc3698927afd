import type { MappingNode } from './yaml-tree.ts';

/** Where the fields of kpt.dev/v1alpha1 went in v1. Source: kpt's documentation of its 0.39 to 1.0 change. */
const FROM_V1ALPHA1: Readonly<Record<string, string>> = {
  packageMetadata: 'packageMetadata becomes info (shortDescription becomes info.description, url becomes info.site)',
  upstream: 'upstream.git keeps repo, directory and ref; its commit moves to upstreamLock.git',
  openAPI: 'setters of openAPI become a function apply-setters in pipeline.mutators, their values its configMap',
  functions: 'functions become pipeline.mutators and pipeline.validators',
  dependencies: 'each of dependencies becomes a nested package (kpt pkg get)',
  inventory: 'inventory keeps namespace, name and inventoryID',
};

/** How to bring a Kptfile of an old version to v1; names the fields of this file that move. */
export function migrationAdvice(version: 'v1alpha1' | 'v1alpha2', root: MappingNode): string {
  const intro =
    `apiVersion kpt.dev/${version} is an old form that kpt itself no longer reads. ` +
    'The command that converted it, kpt fix, is gone from current kpt, so edit the file: set apiVersion: kpt.dev/v1';
  if (version === 'v1alpha2') {
    return `${intro}; a function's inline config moves to a file of its own, named by configPath. Other fields keep their form.`;
  }
  const moves = Object.entries(FROM_V1ALPHA1).filter(([field]) => root.entries.has(field));
  return moves.length === 0 ? `${intro}.` : `${intro}; ${moves.map(([, advice]) => advice).join('; ')}.`;
}
