import { z } from 'zod';
import { findCondition } from '../../object/condition.ts';
import { causesOf, type FieldCause, fieldPath, invalidValue } from '../../object/invalid-object.ts';
import { DNS_LABEL, followsRule } from '../../object/name-rules.ts';
import type { KubernetesObject } from '../../object/object.ts';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { annotationsSchema, labelsSchema } from '../../schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { renderStatusSchema } from './package-revision-resources.ts';

/** Set by the controller, which decides what happens to the package revisions of a deleted variant. Porch uses the same one. */
export const PACKAGE_VARIANT_FINALIZER = 'config.porch.kpt.dev/packagevariants';

/** Reason of `Ready` while the set of a variant permits no further draft, or too many were opened in the last minute. */
export const WAITING = 'Waiting';

/** The message of `Ready`, in the words of Porch; what waits for a decision of users follows it. */
const ENSURED = 'successfully ensured downstream package variant';

export function ensuredMessage(waits: string | undefined): string {
  return waits === undefined ? ENSURED : `${ENSURED}; ${waits}`;
}

/** What waits for a decision of users by the message of `Ready`; undefined if nothing does. */
export function waitsIn(message: string | undefined): string | undefined {
  return message?.startsWith(`${ENSURED}; `) ? message.slice(ENSURED.length + 2) : undefined;
}

/** Keys of the package context that Sluice computes. */
const COMPUTED_KEYS = ['name', 'package-path'];
/** Bounds what one reconciliation writes. */
export const MAX_FUNCTIONS = 50;
export const MAX_INJECTORS = 100;
export const MAX_ENTRIES = 100;

/** Name of an object, and path of a package, in a variant and in a set of variants. */
export const objectName = z.string().min(1).max(253);
export const packagePath = z.string().min(1).max(1000);

/** What a variant, or the template of variants, determines of package revisions, with its place in the object. */
interface Determined {
  readonly at: readonly (string | number)[];
  /** Then the place is that of the path. */
  readonly path?: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/**
 * The causes by which package revisions cannot be as an object determines. Packages that others pushed may have further paths, so this concerns
 * downstream packages only; an object of an earlier version that ends must not be kept by it.
 */
export function revisionCauses({ metadata }: KubernetesObject, parts: Iterable<Determined>): FieldCause[] {
  if (metadata.deletionTimestamp !== undefined) return [];
  return [...parts].flatMap(({ at, path, labels, annotations }) => [
    ...(path === undefined ? [] : pathCauses(path, at)),
    ...(labels === undefined ? [] : metadataCauses(labelsSchema, labels, [...at, 'labels'])),
    ...(annotations === undefined ? [] : metadataCauses(annotationsSchema, annotations, [...at, 'annotations'])),
  ]);
}

function pathCauses(path: string, at: readonly (string | number)[]): FieldCause[] {
  const wrong = path.split('/').find((segment) => !followsRule(segment, DNS_LABEL));
  if (wrong === undefined) return [];
  return [invalidValue(at, path, `segment ${JSON.stringify(wrong)} ${DNS_LABEL.rule}; segments are separated by "/"`)];
}

function metadataCauses(schema: z.ZodType, value: unknown, at: readonly (string | number)[]): FieldCause[] {
  const { issues = [] } = schema.safeParse(value).error ?? {};
  return causesOf(issues, value, false).map(({ message, path }) => {
    const place = [...at, ...path];
    return { field: fieldPath(place), message, path: place };
  });
}

const selector = z.object({
  apiVersion: z.string().optional().describe('API version of the resources.'),
  kind: z.string().optional().describe('Kind of the resources.'),
  name: z.string().optional().describe('Name of the resource.'),
  namespace: z.string().optional().describe('Namespace of the resources.'),
  labels: z.record(z.string(), z.string()).optional().describe('Labels of the resources.'),
  annotations: z.record(z.string(), z.string()).optional().describe('Annotations of the resources.'),
});

export const kptFunctionSchema = z.object({
  image: z.string().optional().describe('Image of the function.'),
  tag: z.string().optional().describe('Tag of the image, or a semantic version constraint.'),
  exec: z.string().optional().describe('Executable of the function, in place of an image.'),
  configPath: z.string().optional().describe('File in the package with the configuration of the function.'),
  configMap: z.record(z.string(), z.string()).optional().describe('Configuration of the function.'),
  // The dots separate the parts of the name that the entry gets in the Kptfile.
  name: z
    .string()
    .max(253)
    .regex(/^[^.]*$/, 'must not contain "."')
    .optional()
    .describe('Name of the pipeline entry. In the Kptfile it is PackageVariant.<variant>.<name>.<position>.'),
  selectors: z.array(selector).optional().describe('Resources that the function receives. Defaults to all.'),
  exclude: z.array(selector).optional().describe('Resources that the function does not receive.'),
});

const injector = z.object({
  group: z.string().optional().describe('Group of the injection points that it applies to. Defaults to all.'),
  version: z.string().optional().describe('Version of the injection points that it applies to. Defaults to all.'),
  kind: z.string().optional().describe('Kind of the injection points that it applies to. Defaults to all.'),
  name: objectName.describe('Name of the object that is injected, in the namespace of the variant.'),
});

/** Objects that were written for earlier versions of Porch have the name of a tag. */
function textRevision(text: string): string {
  const [, number, rest] = /^v?(\d{1,9})(.*)$/s.exec(text) ?? [];
  const write = number === undefined ? 'write the number of the revision' : `write ${Number(number)}`;
  const tag = rest === '' || text.length > 63 ? '' : `, or name the tag in workspaceName: ${JSON.stringify(text)}`;
  return `must be an integer, as in Porch since 2025 (earlier versions had text); ${write}${tag}`;
}

export const upstreamSchema = z
  .object({
    repo: objectName.describe('Name of the Repository object of the upstream package.'),
    package: packagePath.describe('Path of the upstream package in its repository.'),
    revision: z
      .int({ error: ({ input }) => (typeof input === 'string' ? textRevision(input) : undefined) })
      .min(-1)
      .optional()
      .describe(
        'Number of the upstream revision; -1 is the package on the branch. Without revision and workspaceName the variant follows the latest published revision.',
      ),
    workspaceName: z
      .string()
      .max(253)
      .optional()
      .describe('Workspace name of the upstream revision. For the package on the branch it is the branch.'),
  })
  .describe('Package that is cloned.');

const refuseComputed = (keys: readonly string[], context: z.RefinementCtx): void => {
  for (const key of COMPUTED_KEYS)
    if (keys.includes(key)) context.addIssue({ code: 'custom', message: `must not contain the key "${key}"` });
};

const packageContext = z.object({
  data: z
    .record(z.string(), z.string())
    .superRefine((data, context) => refuseComputed(Object.keys(data), context))
    .meta(
      clusterRules(
        ...COMPUTED_KEYS.map((key) => [`!('${key}' in self)`, `must not contain the key "${key}"`] as const),
      ),
    )
    .optional()
    .describe('Keys to set.'),
  removeKeys: z
    .array(z.string().max(253))
    .max(MAX_ENTRIES)
    .superRefine(refuseComputed)
    .meta(
      clusterRules(
        ...COMPUTED_KEYS.map((key) => [`!('${key}' in self)`, `must not contain the key "${key}"`] as const),
      ),
    )
    .optional()
    .describe('Keys to remove.'),
});

export const packageVariantKind = defineKind({
  group: 'config.porch.kpt.dev',
  version: 'v1alpha1',
  kind: 'PackageVariant',
  plural: 'packagevariants',
  categories: ['kpt', 'all'],
  description: 'A package that is cloned from an upstream package, adapted, and kept up to date with it.',
  strategy: {
    validate: (variant) => {
      const { downstream, labels, annotations } = variant.spec;
      return [
        ...ownUpstreamCauses(variant),
        ...revisionCauses(variant, [
          { at: ['spec', 'downstream', 'package'], path: downstream.package },
          { at: ['spec'], labels, annotations },
        ]),
      ];
    },
  },
  spec: z
    .object({
      upstream: upstreamSchema,
      downstream: z
        .object({
          repo: objectName.describe('Name of the Repository object of the downstream package.'),
          package: packagePath.describe('Path of the downstream package in its repository.'),
        })
        .describe('Package that is created and kept up to date.'),
      adoptionPolicy: z
        .enum(['adoptExisting', 'adoptNone'])
        .default('adoptNone')
        .describe('Whether the variant takes over a downstream package that exists. Defaults to adoptNone.'),
      deletionPolicy: z
        .enum(['delete', 'orphan'])
        .default('delete')
        .describe(
          'Action for the package revisions of a deleted variant: delete (default) deletes drafts and proposes the deletion of published revisions, orphan keeps all.',
        ),
      labels: z.record(z.string(), z.string()).optional().describe('Labels of the package revisions.'),
      annotations: z.record(z.string(), z.string()).optional().describe('Annotations of the package revisions.'),
      packageContext: packageContext.optional().describe('Changes of package-context.yaml.'),
      pipeline: z
        .object({
          mutators: z
            .array(kptFunctionSchema)
            .max(MAX_FUNCTIONS)
            .optional()
            .describe('Functions that change the package.'),
          validators: z
            .array(kptFunctionSchema)
            .max(MAX_FUNCTIONS)
            .optional()
            .describe('Functions that check the package.'),
        })
        .optional()
        .describe('Functions that precede those of the package in its pipeline.'),
      injectors: z
        .array(injector)
        .max(MAX_INJECTORS)
        .optional()
        .describe(
          'Objects whose spec (or data, of a ConfigMap) is injected into resources of the package with the annotation kpt.dev/config-injection. The first one that matches a resource counts.',
        ),
    })
    .describe('Desired package.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      downstreamTargets: z
        .array(
          z.object({
            name: z.string().optional().describe('Name of the PackageRevision.'),
            renderStatus: renderStatusSchema.optional().describe('Result of rendering the package.'),
          }),
        )
        .optional()
        .describe('The open draft, or else the latest published revision, of the downstream package.'),
    })
    .describe('Observed state of the variant.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Upstream',
      type: 'string',
      jsonPath: '.spec.upstream.package',
      value: ({ spec }) => spec.upstream.package,
    },
    {
      name: 'Repository',
      type: 'string',
      jsonPath: '.spec.downstream.repo',
      value: ({ spec }) => spec.downstream.repo,
    },
    {
      name: 'Downstream',
      type: 'string',
      jsonPath: '.spec.downstream.package',
      value: ({ spec }) => spec.downstream.package,
    },
    READY_COLUMN,
    {
      name: 'Stalled',
      type: 'string',
      priority: 1,
      jsonPath: '.status.conditions[?(@.type=="Stalled")].status',
      value: ({ status }) => findCondition(status?.conditions, 'Stalled')?.status,
    },
    AGE_COLUMN,
  ],
});

/** Each revision of a package that is its own upstream would lead to another one. */
function ownUpstreamCauses({
  metadata,
  spec: { upstream, downstream },
}: Pick<KubernetesObject, 'metadata'> & {
  readonly spec: Readonly<Record<'upstream' | 'downstream', { readonly repo: string; readonly package: string }>>;
}): FieldCause[] {
  const isSame = upstream.repo === downstream.repo && upstream.package === downstream.package;
  if (!isSame || metadata.deletionTimestamp !== undefined) return [];
  const at = ['spec', 'downstream', 'package'];
  return [invalidValue(at, downstream.package, 'is the package of spec.upstream; choose another package')];
}

export type PackageVariant = ObjectOf<typeof packageVariantKind>;
