import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import { type Finding, findingAt } from '../../../src/function/lint/finding.ts';
import { locateResults, placeIn } from '../../../src/function/lint/locate-results.ts';
import { isResourcePath } from '../../../src/function/resource/resource-path.ts';
import { PUSH_ACTOR } from '../../../src/package/model/gates/verdict.ts';
import type { EffectivePolicy } from '../../../src/package/model/policy/policy.ts';
import { renderFiles } from '../../../src/package/plan/edit/render.ts';
import type { Renderer, Rendering } from '../../../src/package/plan/ports/renderer.ts';

const MAX_RESULTS = 100;
const MAX_NAMED_FILES = 5;

export interface RenderInMemoryOptions {
  /** Runs what the content may run. */
  readonly renderer: Renderer | undefined;
  readonly namespace: string;
  readonly policy: EffectivePolicy;
  readonly signal: AbortSignal;
}

/** Renders a package without writing anything. A package above the limits is a failed rendering; undefined if it cannot be rendered now. */
export async function renderInMemory(
  files: ReadonlyMap<string, Buffer>,
  { renderer, namespace, policy, signal }: RenderInMemoryOptions,
): Promise<Rendering | undefined> {
  try {
    const context = { actor: { name: PUSH_ACTOR }, face: 'git', signal } as const;
    return await renderFiles(files, { renderer, namespace }, policy, context);
  } catch (error) {
    if (!isSluiceError(error, 'LimitExceeded')) throw error;
    const message = error.message;
    return {
      kptfile: [],
      failure: message,
      conditions: [{ type: 'Rendered', status: 'False', reason: 'RenderFailed', message }],
    };
  }
}

/** What functions report about the files of a package, why they failed, and whether they would change it; without mere information. */
export function renderedFindings(rendering: Rendering, files: ReadonlyMap<string, Buffer>): Finding[] {
  const { renderStatus, failure, unavailable, edits } = rendering;
  const texts = new Map<string, string>();
  for (const [path, data] of files) if (isResourcePath(path)) texts.set(path, data.toString('utf8'));
  const steps = [...(renderStatus?.mutationSteps ?? []), ...(renderStatus?.validationSteps ?? [])];
  const findings = locateResults(steps, texts, MAX_RESULTS).filter(({ severity }) => severity !== 'notice');
  if (failure !== undefined) {
    const { file, line } = placeIn(failure, texts) ?? { file: 'Kptfile', line: 1 };
    const [severity, code] =
      unavailable === true ? (['warning', 'NotRendered'] as const) : (['error', 'RenderFailed'] as const);
    findings.push({ ...{ file, line, column: 1 }, severity, message: failure, code });
  } else if ((edits?.size ?? 0) > 0) {
    const names = [...(edits?.keys() ?? [])];
    const more = names.length > MAX_NAMED_FILES ? ` and ${names.length - MAX_NAMED_FILES} more` : '';
    const message = `the pipeline changes ${names.slice(0, MAX_NAMED_FILES).join(', ')}${more}; run "sluice fn render" and commit the result`;
    const first = names.find((name) => files.has(name)) ?? 'Kptfile';
    findings.push(findingAt(first, { severity: 'warning', message, code: 'NotRendered' }));
  }
  return findings;
}
