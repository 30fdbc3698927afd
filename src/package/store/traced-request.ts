import { type SpanAttributes, traced } from '../../foundation/tracing/traced.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { PackageRepository } from './package-repository.ts';

/** Runs a request on a package revision as a span. It names the repository by its id: the address may contain credentials. */
export function tracedRequest<Result>(
  name: 'package.create' | 'package.update',
  { id, trust }: PackageRepository,
  { face, dryRun }: RequestContext,
  attributes: SpanAttributes,
  work: () => Promise<Result>,
): Promise<Result> {
  const repository = { 'sluice.repository': id, 'sluice.repository_id': trust.repository };
  return traced(
    name,
    { ...repository, 'sluice.entry_point': face, 'sluice.dry_run': dryRun === true, ...attributes },
    work,
  );
}
