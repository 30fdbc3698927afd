import { AUTHENTICATED_GROUP, MASTERS_GROUP } from '../authentication/user.ts';
import { FULL_AUTHORITY } from './rbac-authorizer.ts';
import { type ClusterRole, type PolicyRule, RBAC_GROUP, type RoleBinding } from './rbac-objects.ts';

/** The roles and bindings that every server starts with, under the names that Kubernetes uses. */

const LABELS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
const ANNOTATIONS = { 'rbac.authorization.kubernetes.io/autoupdate': 'true' };
const API_VERSION = `${RBAC_GROUP}/v1`;

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

const PACKAGES = ['packagerevisions', 'packagerevisionresources', 'packages'];
/** Subresources that are computed from a package for each request: users who may read packages may read them. */
const PACKAGE_READINGS = ['diff', 'explain', 'history', 'preview'].map((name) => `packagerevisions/${name}`);
const PACKAGE_RULES: readonly [group: string, resources: readonly string[]][] = [
  ['config.porch.kpt.dev', ['packagevariants', 'packagevariantsets', 'repositories']],
  [
    'sluice.dev',
    [
      'analysisruns',
      'analysistemplates',
      'deliverytargets',
      'freezes',
      'notifications',
      'packagedeliveries',
      'packagepolicies',
      'waveplans',
      'wavetargets',
    ],
  ],
  ['ipam.resource.nephio.org', ['ipclaims', 'ipprefixes', 'networkinstances']],
  ['infra.nephio.org', ['workloadclusters']],
];

function rule(group: string, resources: readonly string[], verbs: readonly string[]): PolicyRule {
  return { apiGroups: [group], resources, verbs };
}

/** Everything in a namespace but secrets, accounts and roles. */
const VIEW: readonly PolicyRule[] = [
  rule('', ['configmaps', 'events', 'namespaces'], READ),
  rule('events.k8s.io', ['events'], READ),
  rule(
    'porch.kpt.dev',
    [...PACKAGES, 'packagerevisions/status', 'packagerevisions/approval', ...PACKAGE_READINGS],
    READ,
  ),
  ...PACKAGE_RULES.map(([group, resources]) => rule(group, resources, READ)),
  rule('coordination.k8s.io', ['leases'], READ),
];

/**
 * Conditions that a user without this right writes into the Kptfile open no gate; policies list the permitted issuers.
 */
const ISSUE_CONDITIONS = [
  rule('porch.kpt.dev', ['packagerevisions/status'], ['patch', 'update']),
  rule('sluice.dev', ['wavetargets/status'], ['get', 'patch', 'update']),
];

/**
 * Policies decide who may approve; they select repositories by label, and an annotation of a repository switches its gates off. Therefore
 * users who work on packages change neither, nor the metrics by which a rollout goes on, nor do they stop or resume
 * all work by a Freeze, or approve by a WavePlan. What targets deliver, and what plans did with their targets, are records of Sluice itself,
 * which no role may change; the conditions of a WaveTarget are set by those who may issue conditions.
 */
const GUARDED = [
  'analysisruns',
  'analysistemplates',
  'freezes',
  'packagedeliveries',
  'packagepolicies',
  'repositories',
  'waveplans',
  'wavetargets',
];
const EDITABLE = PACKAGE_RULES.map(
  ([group, resources]) => [group, resources.filter((resource) => !GUARDED.includes(resource))] as const,
);

const EDIT: readonly PolicyRule[] = [
  ...VIEW,
  rule('', ['secrets', 'serviceaccounts'], READ),
  rule('', ['configmaps', 'events', 'secrets', 'serviceaccounts'], WRITE),
  rule('events.k8s.io', ['events'], WRITE),
  rule('porch.kpt.dev', PACKAGES, WRITE),
  ...ISSUE_CONDITIONS,
  ...EDITABLE.flatMap(([group, resources]) => (resources.length === 0 ? [] : rule(group, resources, WRITE))),
  rule('coordination.k8s.io', ['leases'], WRITE),
];

const ADMIN: readonly PolicyRule[] = [
  ...EDIT,
  rule('porch.kpt.dev', ['packagerevisions/approval'], ['patch', 'update']),
  rule('sluice.dev', ['analysisruns', 'analysistemplates', 'freezes', 'packagepolicies', 'waveplans'], WRITE),
  rule('config.porch.kpt.dev', ['repositories'], WRITE),
  rule(RBAC_GROUP, ['roles', 'rolebindings'], [...READ, ...WRITE]),
  rule('authorization.k8s.io', ['localsubjectaccessreviews'], ['create']),
];

/** Without it a preview and the deployments of a revision have nothing but the names of the targets of their namespace. */
const READ_TARGETS = rule('sluice.dev', ['deliverytargets', 'packagedeliveries', 'waveplans', 'wavetargets'], READ);

const INFO_PATHS = ['/healthz', '/livez', '/readyz', '/version', '/version/'];
const DISCOVERY_PATHS = [...INFO_PATHS, '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'];

const ROLES: Readonly<Record<string, readonly PolicyRule[]>> = {
  'cluster-admin': FULL_AUTHORITY,
  admin: ADMIN,
  edit: EDIT,
  view: VIEW,
  'system:basic-user': [
    rule('authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
    rule('authentication.k8s.io', ['selfsubjectreviews'], ['create']),
  ],
  'system:discovery': [{ nonResourceURLs: DISCOVERY_PATHS, verbs: ['get'] }],
  'system:public-info-viewer': [{ nonResourceURLs: INFO_PATHS, verbs: ['get'] }],
  'sluice:package-editor': [
    rule('porch.kpt.dev', PACKAGES, READ),
    rule('porch.kpt.dev', PACKAGE_READINGS, ['get']),
    rule('porch.kpt.dev', ['packagerevisions', 'packagerevisionresources'], WRITE),
    ...ISSUE_CONDITIONS,
    rule('config.porch.kpt.dev', ['repositories'], READ),
    READ_TARGETS,
    rule('', ['events', 'namespaces'], READ),
    rule('events.k8s.io', ['events'], READ),
  ],
  'sluice:condition-issuer': [
    rule('porch.kpt.dev', PACKAGES, READ),
    rule('porch.kpt.dev', PACKAGE_READINGS, ['get']),
    ...ISSUE_CONDITIONS,
    rule('config.porch.kpt.dev', ['repositories'], READ),
    READ_TARGETS,
    rule('', ['events', 'namespaces'], READ),
    rule('events.k8s.io', ['events'], READ),
  ],
  'sluice:approver': [
    rule('porch.kpt.dev', PACKAGES, READ),
    rule('porch.kpt.dev', PACKAGE_READINGS, ['get']),
    rule('porch.kpt.dev', ['packagerevisions/approval'], ['get', 'patch', 'update']),
    rule('sluice.dev', ['waveplans'], ['patch', 'update']),
    rule('config.porch.kpt.dev', ['repositories'], READ),
    READ_TARGETS,
    rule('', ['events', 'namespaces'], READ),
    rule('events.k8s.io', ['events'], READ),
  ],
};

/** The cluster-wide role of each group. */
const BINDINGS: Readonly<Record<string, string>> = {
  'cluster-admin': MASTERS_GROUP,
  'system:basic-user': AUTHENTICATED_GROUP,
  'system:discovery': AUTHENTICATED_GROUP,
  'system:public-info-viewer': AUTHENTICATED_GROUP,
};

export const BOOTSTRAP_ROLES: readonly ClusterRole[] = Object.entries(ROLES).map(([name, rules]) => ({
  apiVersion: API_VERSION,
  kind: 'ClusterRole',
  metadata: { name, labels: LABELS, annotations: ANNOTATIONS },
  rules,
}));

export const BOOTSTRAP_BINDINGS: readonly RoleBinding[] = Object.entries(BINDINGS).map(([role, group]) => ({
  apiVersion: API_VERSION,
  kind: 'ClusterRoleBinding',
  metadata: { name: role, labels: LABELS, annotations: ANNOTATIONS },
  roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: RBAC_GROUP, kind: 'Group', name: group }],
}));
