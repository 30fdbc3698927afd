import {
  describePolicy,
  reviewClash,
  type SelectedFrom,
  selectedRepositories,
} from '../../../controllers/approval/describe-policy.ts';
import { APPROVERS_PERMITTED, permitCommands } from '../../../controllers/package-policy/approver-rights.ts';
import { boundGroups } from '../../../controllers/package-policy/bound-groups.ts';
import { gatesRequired, unknownGroups, unknownTypes } from '../../../controllers/package-policy/policy-names.ts';
import { QUORUM_REACHABLE } from '../../../controllers/package-policy/quorum-rights.ts';
import { clashText, repositoryClash } from '../../../controllers/package-policy/review-clash.ts';
import type { ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { readUnknownNames } from '../../../controllers/unknown-names.ts';
import { forgeProblem } from '../../app/controllers/forge-repository.ts';
import { apiProblems, approverProblems, secretProblem } from '../../app/controllers/review-problems.ts';
import { isAboutApi, isAboutCredentialsOfApp, isAboutSecret } from '../../forge/http/error-texts.ts';
import { unlessMissing } from '../../foundation/sluice-error.ts';
import { listed } from '../../foundation/text/counted.ts';
import type { SourcedPolicy } from '../../package/store/policies/effective-policy.ts';
import { type Event, eventKind } from '../../resource/kinds/core/event.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import {
  POLICIES_CONDITION,
  type PolicyInForce,
  policyFolderOf,
  type Repository,
  repositoryKind,
} from '../../resource/kinds/porch/repository.ts';
import { type PackagePolicy, packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { withStatus } from '../access/repository-status.ts';
import { missingObject } from './expect-object.ts';
import {
  appCommand,
  editStep,
  failureText,
  type HostFailures,
  hostFailures,
  secretCommand,
  tokenCommand,
} from './host-access.ts';
import { unlessUnreadable } from './unless-unreadable.ts';

/** Repositories that are named. */
const MAX_NAMED = 5;

const NOT_CHECKED = 'PullRequestsNotChecked';
const NO_FAILURES: HostFailures = { messages: [], revisions: [] };

/** A policy in a folder that a Repository names, as the status of the Repository reports it. */
interface Found {
  readonly repository: Stored<Repository>;
  readonly policy: PolicyInForce;
}

/**
 * Explains a PackagePolicy: an object, or one from a repository; `<repository>/<name>` means that of the repository. Policies of the same
 * name are next steps.
 */
export async function explainPolicy(access: Access, text: string): Promise<ObjectExplanation> {
  const { client, namespace, clock } = access;
  const [name = '', repository] = text.split('/', 2).reverse();
  const [object, all] = await Promise.all([
    repository === undefined ? client.find(packagePolicyKind, { namespace, name }) : undefined,
    client.list(repositoryKind, { namespace }),
  ]);
  // Also those whose policies are not asked for: the gates that they require are known too.
  const withPolicies = await Promise.all(
    all.items
      .filter((one) => policyFolderOf(one) !== undefined)
      .map(async (one) => (await withStatus(access, one)).object),
  );
  const read = withPolicies.filter(({ metadata }) => repository === undefined || metadata.name === repository);
  const known = read.flatMap((one) => (one.status?.policies ?? []).map((policy) => ({ repository: one, policy })));
  const same = known.filter(({ policy }) => policy.name === name);
  const [first] = same;
  const policy = object ?? (first === undefined ? undefined : sourced(first));
  if (policy === undefined) {
    const names = (await client.list(packagePolicyKind, { namespace })).items.map(({ metadata }) => metadata.name);
    throw missingObject(
      access,
      packagePolicyKind,
      text,
      [...new Set([...names, ...known.map(({ policy }) => policy.name)])],
      read.flatMap(problemOf),
    );
  }
  const [revisions, policies, variants] = await Promise.all([
    client.list(packageRevisionKind, { namespace }),
    client.list(packagePolicyKind, { namespace }),
    unlessMissing(client.list(packageVariantKind, { namespace })),
  ]);
  const from = { revisions: revisions.items, repositories: all.items, variants: variants?.items ?? [] };
  const explanation = describePolicy(policy, from, clock.now());
  const isOfRepository = object === undefined && first !== undefined;
  const unshown = 'its text is not shown, since the policies of the Repository are too large: read the file';
  const further = same
    .filter((one) => !isOfRepository || one !== first)
    .map((one) => `packagepolicy/${reference(one)}`);
  const { selector } = policy.spec;
  const types = new Set(revisions.items.flatMap(typesOf));
  const groups = await unlessUnreadable(boundGroups(client, namespace));
  const secret = await readSecretProblem(access, policy);
  const isMissing = secret !== undefined && 'missing' in secret;
  const ofSecret = secret === undefined ? [] : [isMissing ? secret.missing : secret.invalid];
  const failures = policy.spec.review === undefined ? NO_FAILURES : await hostFailures(access, explanation.next);
  const clash = clashOf(policy, policies.items, from);
  const ofApi = apiProblems(policy);
  const secretName = policy.spec.review?.forge.secretRef.name;
  const isOwn = (message: string) => secretName !== undefined && isAboutSecret(message, namespace, secretName);
  const tried = explanation.next.length === 0 ? await lastFailures(access, policy, from) : [];
  // A limit of requests ends by itself.
  const isOfAccess = (message: string) => isAboutApi(message) || isAboutCredentialsOfApp(message) || isOwn(message);
  const ofHost = [...failures.messages, ...tried.map(({ message }) => message).filter(isOfAccess)];
  const commands = [
    ...(clash === undefined
      ? []
      : [editStep(policy, 'remove spec.review from all but one of them, or change their selectors')]),
    ...(ofApi.length > 0 || ofHost.some(isAboutApi)
      ? [editStep(policy, 'check spec.review.forge.api and spec.review.forge.provider')]
      : []),
    ...(object === undefined ? [] : permitCommands(object)),
    ...secretCommands(namespace, policy.spec, { secret, messages: ofHost, repositories: all.items }),
  ];
  // Those that report that the host is not accessible have no other explanation, and lead here.
  const waiting = failures.revisions;
  const isWrong = ofSecret.length + ofApi.length > 0 || clash !== undefined;
  return {
    ...explanation,
    state: `${explanation.state}${failureText({ messages: ofHost }, isWrong)}`,
    reasons: [
      ...(isOfRepository && first.policy.spec === undefined
        ? [...explanation.reasons.slice(0, 1), unshown]
        : explanation.reasons),
      ...(isOfRepository ? problemOf(first.repository) : []),
      ...(await readUnknownNames(client, namespace, { ...selector })),
      ...(types.size === 0
        ? []
        : unknownTypes(policy.spec, types, gatesIn(revisions.items, policies.items, withPolicies))),
      ...(groups === undefined ? [] : unknownGroups(policy.spec, groups)),
      ...rightsNotes(object),
      ...foreignRepositories(policy, selectedRepositories(policy, from), all.items),
      ...(clash === undefined ? [] : [clash]),
      ...ofSecret,
      ...ofApi,
      ...approverProblems(policy),
      ...(explanation.next.length === 0 ? untriedNotes(policy, tried) : []),
      ...failures.messages.map(
        (message) =>
          `${message}; this is tried again within a minute, and reported by ${listed(failures.revisions, MAX_NAMED)}`,
      ),
    ],
    next: [...explanation.next.filter((one) => !waiting.includes(one)), ...further],
    ...(commands.length === 0 ? {} : { commands }),
  };
}

/** What a server reports of the rights of the users of a quorum, and of reviewers. */
function rightsNotes(policy: PackagePolicy | undefined): string[] {
  return [QUORUM_REACHABLE, APPROVERS_PERMITTED].flatMap((type) => {
    const message = findCondition(policy?.status?.conditions, type)?.message ?? '';
    return message === '' ? [] : [message];
  });
}

/** Without a proposal nothing shows whether the host gives access, but what its Repositories report of the pull requests of users. */
function untriedNotes({ spec }: SourcedPolicy, tried: readonly LastFailure[]): string[] {
  if (spec.review === undefined) return [];
  const note = 'no proposal waits by which it would be seen whether the Git host lets Sluice open pull requests';
  const last = tried.map(
    ({ repository, message, at }) =>
      `the last failure that Repository ${repository} reported is from ${at}: ${message}`,
  );
  return [note, ...last];
}

/** What a Repository reported last of the pull requests of users, which could not be checked. */
interface LastFailure {
  readonly repository: string;
  readonly message: string;
  readonly at: string;
}

async function lastFailures(
  { client, namespace }: Access,
  policy: SourcedPolicy,
  from: SelectedFrom,
): Promise<LastFailure[]> {
  if (policy.spec.review === undefined) return [];
  const found: LastFailure[] = [];
  for (const repository of selectedRepositories(policy, from).slice(0, MAX_NAMED)) {
    const fieldSelector = `involvedObject.name=${repository}`;
    const events = await unlessUnreadable(client.list(eventKind, { namespace, fieldSelector }));
    const timeOf = ({ lastTimestamp, metadata }: Stored<Event>) => lastTimestamp ?? metadata.creationTimestamp ?? '';
    const [last] = (events?.items ?? [])
      .filter(({ reason }) => reason === NOT_CHECKED || reason === 'PullRequestsRead')
      .sort((a, b) => timeOf(b).localeCompare(timeOf(a)));
    if (last?.reason === NOT_CHECKED) found.push({ repository, message: last.message, at: timeOf(last) });
  }
  return found;
}

/** The policies that have spec.review for the same packages, so that none of them applies there. */
function clashOf(
  policy: SourcedPolicy,
  policies: readonly Stored<PackagePolicy>[],
  from: SelectedFrom,
): string | undefined {
  const others = policies.filter(({ metadata }) => metadata.uid !== policy.metadata.uid);
  const clash = reviewClash(policy, others, from);
  if (clash === undefined) return repositoryClash(policy, others, from.repositories);
  return clashText([policy.metadata.name, ...clash.policies], `packages such as ${clash.package}`);
}

/** Gates of packages, and those that policies require; undefined while not all policies are known. */
function gatesIn(
  revisions: readonly PackageRevision[],
  policies: readonly PackagePolicy[],
  repositories: readonly Repository[],
): ReadonlySet<string> | undefined {
  const required = gatesRequired(policies, repositories);
  const gates = revisions.flatMap(({ spec }) => (spec.readinessGates ?? []).map((gate) => gate.conditionType));
  return required && new Set([...gates, ...required]);
}

/** Types of the conditions and gates of a revision. */
function typesOf({ spec, status }: PackageRevision): string[] {
  const gates = (spec.readinessGates ?? []).map(({ conditionType }) => conditionType);
  return [...gates, ...(status?.conditions ?? []).map(({ type }) => type)];
}

/** The repositories whose proposals get no pull request, as they are not on the host that the policy names. */
function foreignRepositories(
  { metadata, spec: { review } }: SourcedPolicy,
  selected: readonly string[],
  repositories: readonly Repository[],
): string[] {
  if (review === undefined) return [];
  const groups = new Map<string, string[]>();
  for (const {
    metadata: { name },
    spec,
  } of repositories) {
    const problem = selected.includes(name)
      ? forgeProblem(spec.git?.repo ?? '', review.forge.api, `spec.review.forge.api of policy ${metadata.name}`)
      : undefined;
    if (problem !== undefined) groups.set(problem, [...(groups.get(problem) ?? []), name]);
  }
  return [...groups].map(
    ([problem, names]) => `no proposal in ${listed(names, MAX_NAMED)} gets a pull request: ${problem}`,
  );
}

/** What is wrong with the Secret of the policy; undefined for a reader who may not read it too. */
function readSecretProblem({ client, namespace }: Access, policy: SourcedPolicy) {
  const { signal } = new AbortController();
  return unlessUnreadable(secretProblem(client, { ...policy, metadata: { ...policy.metadata, namespace } }, signal));
}

/** What mends problems with the Secret of the policy, which it has itself or which messages of the host name; none for others. */
function secretCommands(
  namespace: string,
  { review }: Pick<SourcedPolicy['spec'], 'review'>,
  {
    secret,
    messages,
    repositories,
  }: {
    readonly secret: Awaited<ReturnType<typeof secretProblem>>;
    readonly messages: readonly string[];
    readonly repositories: readonly Repository[];
  },
): string[] {
  if (review === undefined) return [];
  const { secretRef } = review.forge;
  const own = secret === undefined || 'missing' in secret ? [] : [secret.invalid];
  const named = [...messages, ...own].filter((message) => isAboutSecret(message, namespace, secretRef.name));
  const isMissing = secret !== undefined && 'missing' in secret;
  if (!isMissing && named.length === 0) return [];
  const isThere = isMissing ? secret.isThere : !named.some((message) => message.includes('does not exist; create it'));
  const isOfApp =
    (secret !== undefined && 'invalid' in secret && secret.isOfApp) || named.some(isAboutCredentialsOfApp);
  if (isOfApp)
    return [
      appCommand(
        namespace,
        secretRef,
        named.some((message) => message.includes('githubAppInstallationID')),
      ),
    ];
  if (isThere) return [tokenCommand(namespace, secretRef)];
  const isForGit = repositories.some(({ spec }) => spec.git?.secretRef?.name === secretRef.name);
  return [secretCommand(namespace, secretRef, isForGit)];
}

function reference({ repository, policy }: Found): string {
  return `${repository.metadata.name}/${policy.name}`;
}

function sourced({ repository, policy: { name, file, commit, spec } }: Found): SourcedPolicy {
  const { metadata } = repository;
  const complete = packagePolicyKind.complete({
    metadata: { name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) },
    spec: { ...spec },
  });
  const origin = { name, file, commit, repository: metadata.name, branch: repository.spec.git?.branch ?? 'main' };
  return { ...complete, metadata: { ...complete.metadata, name: `${name} of Repository ${metadata.name}` }, origin };
}

/** Why policies on the branch do not count, if they do not. */
function problemOf({ metadata, status }: Stored<Repository>): string[] {
  const valid = findCondition(status?.conditions, POLICIES_CONDITION);
  return valid?.status === 'False'
    ? [`the policies of Repository ${metadata.name} are not valid: ${valid.message}`]
    : [];
}
