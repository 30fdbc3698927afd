import { kptfileShape } from '../model/field-shape.ts';
import { KptfileReadFailure } from '../model/kptfile-error.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import { type LoadedKptfile, loadKptfile } from '../read/read-kptfile.ts';
import { lintConditions } from './lint-conditions.ts';
import { lintFields } from './lint-fields.ts';
import { type LintFinding, LintReport } from './lint-finding.ts';
import { lintPipeline } from './lint-pipeline.ts';

const UPDATE_STRATEGIES: ReadonlySet<string> = new Set([
  'resource-merge',
  'fast-forward',
  'force-delete-replace',
  'copy-merge',
]);

/**
 * Checks a Kptfile as strictly as kpt does (unknown fields, the rules for functions and inventory) and adds
 * warnings about what kpt accepts. Ordered by position; empty without findings. Never throws.
 * It does not check whether a configPath names an existing file: only the text is known here.
 */
export function lintKptfile(text: string | Uint8Array): LintFinding[] {
  let loaded: LoadedKptfile;
  try {
    loaded = loadKptfile(text);
  } catch (error) {
    if (!(error instanceof KptfileReadFailure)) throw error;
    const { code, message, line = 1, column = 1, path = '' } = error.error;
    return [{ severity: 'error', code, message, line, column, path }];
  }
  const report = new LintReport(loaded.root, loaded.tree.source);
  lintFields(loaded.root, kptfileShape, [], report);
  lintPackage(loaded.kptfile, report);
  lintPipeline(loaded.kptfile, report);
  lintConditions(loaded.kptfile, report);
  return report.findings.sort((left, right) => left.line - right.line || left.column - right.column);
}

function lintPackage({ metadata, upstream }: Kptfile, report: LintReport): void {
  if ((metadata?.name ?? '') === '') report.warning('MissingName', ['metadata'], 'metadata.name is missing.');
  const strategy = upstream?.updateStrategy;
  if (strategy !== undefined && strategy !== '' && !UPDATE_STRATEGIES.has(strategy)) {
    const known = [...UPDATE_STRATEGIES].join(', ');
    const text = `kpt knows no update strategy ${JSON.stringify(strategy)}. Use one of ${known}.`;
    report.warning('UpdateStrategy', ['upstream', 'updateStrategy'], text);
  }
}
