import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PolicyOrigin } from '../../../package/model/policy/approval-rules.ts';
import type { SourcedPolicy } from '../../../package/store/policies/effective-policy.ts';
import { type ManifestErrorDetails, readManifests } from '../../../resource/client/manifests.ts';
import { MAX_POLICIES } from '../../../resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../../resource/kinds/sluice/package-policy.ts';
import { type RepositoryPolicy, repositoryPolicyKind } from '../../../resource/kinds/sluice/repository-policy.ts';
import { fieldPath, invalidObject } from '../../../resource/object/invalid-object.ts';
import type { Stored } from '../../../resource/object/object.ts';

export interface PolicyFile {
  /** In the repository. */
  readonly path: string;
  readonly data: Uint8Array;
}

/** The place of files: a Repository, its namespace, and the commit at which they were read. */
export type PolicyPlace = Omit<PolicyOrigin, 'file' | 'name'> & { readonly namespace: string };

const LIMITS = { maxCharacters: 64 * 1024, maxDocuments: 20 };
/** Windows and freezes of all policies together: users who may push to one repository must not use up what a namespace can have. */
const MAX_PERIODS = 200;
const PERIOD_FIELDS = ['windows', 'freezes'] as const;
/** Other rules of all policies together: each is compared with each condition of a revision. */
const MAX_RULES = 1000;
const RULE_FIELDS = ['requiredGates', 'validFor', 'pushDenied', 'gateDeadlines'] as const;
const SHOWN_COMMIT_CHARACTERS = 10;

/** The policies in files of a repository. Throws InvalidInput, which names the file, the line and the field, if one of them is invalid. */
export function readPolicyFiles(files: readonly PolicyFile[], place: PolicyPlace): SourcedPolicy[] {
  const texts = files.map(({ path, data }) => ({ path, text: textOf(path, data) }));
  const manifests = readManifests(texts, [countedKind()], LIMITS, place.namespace);
  if (manifests.length > MAX_POLICIES)
    throw new SluiceError('InvalidInput', `there are ${manifests.length} policies, at most ${MAX_POLICIES} are read`);
  return manifests.map(({ object, path, line }) => {
    const policy = object as Stored<RepositoryPolicy>;
    const { namespace } = policy.metadata;
    if (namespace !== place.namespace) {
      const message = `the policy applies to namespace ${place.namespace} of Repository ${place.repository}, and names ${namespace}; remove it`;
      throw problemIn(path, line, 'metadata.namespace', message);
    }
    return sourced(policy, path, place);
  });
}

/**
 * The kind for one reading of files. It counts before it validates, since a schedule can cost half a millisecond: the document with which there are
 * too many is not validated, and neither are those after it. Its `parse` throws InvalidInput for these.
 */
function countedKind(): typeof repositoryPolicyKind {
  let rules = 0;
  let periods = 0;
  const refuse = (path: readonly string[], limit: string) =>
    invalidObject(repositoryPolicyKind.kind, [
      { path, field: fieldPath(path), message: `all policies of the repository together may have at most ${limit}` },
    ]);
  return {
    ...repositoryPolicyKind,
    parse: (value) => {
      const spec = fieldOf(value, 'spec');
      for (const name of RULE_FIELDS) rules += lengthOf(fieldOf(spec, name));
      for (const name of PERIOD_FIELDS) periods += lengthOf(fieldOf(fieldOf(spec, 'approval'), name));
      if (rules > MAX_RULES)
        throw refuse(['spec'], `${MAX_RULES} requiredGates, validFor, pushDenied and gateDeadlines`);
      if (periods > MAX_PERIODS) throw refuse(['spec', 'approval'], `${MAX_PERIODS} windows and freezes`);
      return repositoryPolicyKind.parse(value);
    },
  };
}

function fieldOf(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | null | undefined)?.[name];
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

function sourced(
  { metadata: { name }, spec }: Stored<RepositoryPolicy>,
  file: string,
  { namespace, ...place }: PolicyPlace,
): SourcedPolicy {
  const { selector, requiredGates, validFor, pushDenied, gateDeadlines, pushMayGive, approval, dependencies } = spec;
  const { forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak } = approval;
  const policy = packagePolicyKind.complete({
    metadata: { name, namespace },
    spec: {
      ...{ selector, requiredGates, validFor, pushDenied, gateDeadlines, pushMayGive, dependencies },
      approval: { forbidSelfApproval, quorum, windows, freezes, maxInFlight, soak },
    },
  });
  const { commit, repository } = place;
  const origin = `${file} at ${commit.slice(0, SHOWN_COMMIT_CHARACTERS)}`;
  return {
    ...policy,
    // This is how messages name the policy.
    metadata: { ...policy.metadata, name: `${name} of Repository ${repository} (${origin})` },
    spec: { ...policy.spec, commitBudgetPerHour: spec.commitBudgetPerHour ?? Number.POSITIVE_INFINITY },
    origin: { ...place, name, file },
  };
}

function textOf(path: string, data: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(data);
  } catch {
    throw problemIn(path, 1, '', 'the file is not UTF-8 text');
  }
}

function problemIn(path: string, line: number, field: string, message: string): SluiceError<ManifestErrorDetails> {
  const problems = [{ path, line, column: 1, field, message }];
  const text = `${path}:${line}:1: ${field === '' ? '' : `${field}: `}${message}`;
  return new SluiceError('InvalidInput', text, { details: { problems } });
}
