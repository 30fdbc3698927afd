import { conditionsOf, type RenderStatus } from '../../kptfile-schema/index.ts';
import { renderStatusOf } from '../../src/package/api/objects/render-status.ts';
import { RENDERED_TYPE } from '../../src/package/model/gates/verdict.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';

type DownstreamTarget = NonNullable<NonNullable<PackageVariant['status']>['downstreamTargets']>[number];
type RenderedTarget = NonNullable<DownstreamTarget['renderStatus']>;

/**
 * What the status of a variant says of its downstream revision. The result of rendering is that in the Kptfile, if it is kept there; else that of
 * the commit that the variant made (`rendered`), or the one that the status has (`before`). The condition Rendered is newer than these: it counts
 * where users have changed the draft since.
 */
export function downstreamTarget(
  { name, kptfile, record }: PackageRevision,
  rendered: RenderStatus | undefined,
  before: DownstreamTarget | undefined,
): DownstreamTarget {
  const kept = kptfile?.status?.renderStatus;
  if (kept !== undefined) return { name, renderStatus: renderStatusOf(kept) };
  const condition = kptfile === undefined ? undefined : conditionsOf(kptfile).get(RENDERED_TYPE);
  // A clone has the condition of its upstream, which says nothing about its own functions, until it was rendered itself.
  if (condition === undefined || verdictOf(record, RENDERED_TYPE)?.status !== condition.status) return { name };
  const known =
    rendered !== undefined ? renderStatusOf(rendered) : before?.name === name ? before.renderStatus : undefined;
  const failure = condition.status === 'False' ? (condition.message ?? '') : undefined;
  if (known !== undefined && known.error === failure && hasFailed(known) === (failure !== undefined))
    return { name, renderStatus: known };
  if (failure !== undefined) return { name, renderStatus: { result: { exitCode: 1 }, error: failure } };
  const { mutators = [], validators = [] } = kptfile?.pipeline ?? {};
  return mutators.length + validators.length === 0 ? { name } : { name, renderStatus: { result: { exitCode: 0 } } };
}

function hasFailed({ result, error }: RenderedTarget): boolean {
  return error !== undefined || (result?.exitCode ?? 0) !== 0;
}
