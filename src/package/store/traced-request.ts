import { type SpanAttributes, traced } from '../../foundation/tracing/traced.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { revisionName } from '../model/identity/identity.ts';
import type { Action } from '../model/revision/revision-state.ts';
import type { NewRevision } from '../upstream/revision-source.ts';
import type { PackageRepository } from './package-repository.ts';

/** Runs the creation of a package revision as a span. */
export function tracedCreate<Result>(
  repository: PackageRepository,
  wanted: NewRevision,
  context: RequestContext,
  work: () => Promise<Result>,
): Promise<Result> {
  const revision = revisionName({ ...wanted, repository: repository.repository });
  const attributes = { ...attributesOf(repository, revision, context), 'sluice.source': wanted.source.type };
  return traced('package.create', attributes, work);
}

/** Runs a request on a package revision as a span. */
export function tracedUpdate<Result>(
  repository: PackageRepository,
  revision: string,
  action: Action | 'edit',
  context: RequestContext,
  work: () => Promise<Result>,
): Promise<Result> {
  const attributes = { ...attributesOf(repository, revision, context), 'sluice.action': action };
  return traced('package.update', attributes, work);
}

/** They name the repository by its id: the address may contain credentials. */
function attributesOf(
  { id, trust }: PackageRepository,
  revision: string,
  { face, dryRun }: RequestContext,
): SpanAttributes {
  return {
    ...{ 'sluice.repository': id, 'sluice.repository_id': trust.repository, 'sluice.package_revision': revision },
    ...{ 'sluice.entry_point': face, 'sluice.dry_run': dryRun === true },
  };
}
