import { z } from 'zod';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { DeepReadonly } from '../../object/object.ts';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { labelSelector, labelSelectorSchema } from '../../selector/label-selector.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import {
  kptFunctionSchema,
  MAX_ENTRIES,
  MAX_FUNCTIONS,
  MAX_INJECTORS,
  objectName,
  packagePath,
  revisionCauses,
  upstreamSchema,
} from './package-variant.ts';
import { expressionCauses } from './template-expressions.ts';

/** The label of the variants of a set, as in Porch: the uid of the set. */
export const SET_LABEL = 'config.porch.kpt.dev/packagevariantset';
const MAX_TARGETS = 10_000;
const DEFAULT_MAX_TARGETS = 1000;
const MAX_TARGET_ENTRIES = 100;
const MAX_EXPRESSION_CHARACTERS = 4096;

/** A CEL expression; see expressionCauses. */
const expression = z.string().min(1).max(MAX_EXPRESSION_CHARACTERS);

/** Adds a rule that at most one of two fields may be there. */
function notBoth<Shape extends z.ZodRawShape>(
  object: z.ZodObject<Shape>,
  ...pairs: readonly (readonly [one: string, other: string])[]
) {
  const message = ([one, other]: readonly [string, string]) => `may specify only one of ${one} and ${other}`;
  return object
    .superRefine((value, context) => {
      for (const pair of pairs)
        if (pair.every((field) => (value as Readonly<Record<string, unknown>>)[field] !== undefined))
          context.addIssue({ code: 'custom', message: message(pair) });
    })
    .meta(
      clusterRules(...pairs.map((pair) => [`!(has(self.${pair[0]}) && has(self.${pair[1]}))`, message(pair)] as const)),
    );
}

const mapExpression = notBoth(
  z.object({
    key: z.string().optional().describe('Key.'),
    keyExpr: expression.optional().describe('CEL expression of the key.'),
    value: z.string().optional().describe('Value.'),
    valueExpr: expression.optional().describe('CEL expression of the value.'),
  }),
  ['key', 'keyExpr'],
  ['value', 'valueExpr'],
);
const mapExpressions = z.array(mapExpression).max(MAX_ENTRIES).optional();

const functionTemplate = z.object({
  ...kptFunctionSchema.shape,
  configMapExprs: mapExpressions.describe('Entries of configMap by CEL expressions.'),
});

const INJECTOR_RULE = 'must specify either name or nameExpr';

const template = z.object({
  downstream: notBoth(
    z.object({
      repo: objectName.optional().describe('Name of the downstream Repository object.'),
      repoExpr: expression.optional().describe('CEL expression of the name.'),
      package: packagePath.optional().describe('Path of the downstream package.'),
      packageExpr: expression.optional().describe('CEL expression of the path.'),
    }),
    ['repo', 'repoExpr'],
    ['package', 'packageExpr'],
  )
    .optional()
    .describe('Downstream package, in place of the one that the target names.'),
  adoptionPolicy: z.enum(['adoptExisting', 'adoptNone']).optional().describe('See PackageVariant.'),
  deletionPolicy: z.enum(['delete', 'orphan']).optional().describe('See PackageVariant.'),
  labels: z.record(z.string(), z.string()).optional().describe('Labels of the package revisions.'),
  labelExprs: mapExpressions.describe('Labels by CEL expressions.'),
  annotations: z.record(z.string(), z.string()).optional().describe('Annotations of the package revisions.'),
  annotationExprs: mapExpressions.describe('Annotations by CEL expressions.'),
  packageContext: z
    .object({
      data: z.record(z.string(), z.string()).optional().describe('Keys to set.'),
      dataExprs: mapExpressions.describe('Keys to set by CEL expressions.'),
      removeKeys: z.array(z.string().max(253)).max(MAX_ENTRIES).optional().describe('Keys to remove.'),
      removeKeyExprs: z.array(expression).max(MAX_ENTRIES).optional().describe('CEL expressions of keys to remove.'),
    })
    .optional()
    .describe('Changes of package-context.yaml.'),
  pipeline: z
    .object({
      mutators: z.array(functionTemplate).max(MAX_FUNCTIONS).optional().describe('Functions that change the package.'),
      validators: z.array(functionTemplate).max(MAX_FUNCTIONS).optional().describe('Functions that check the package.'),
    })
    .optional()
    .describe('Functions that precede those of the package in its pipeline.'),
  injectors: z
    .array(
      z
        .object({
          group: z.string().optional().describe('Group of the injection points.'),
          version: z.string().optional().describe('Version of the injection points.'),
          kind: z.string().optional().describe('Kind of the injection points.'),
          name: objectName.optional().describe('Name of the object that is injected.'),
          nameExpr: expression.optional().describe('CEL expression of the name.'),
        })
        .refine(({ name, nameExpr }) => (name === undefined) !== (nameExpr === undefined), INJECTOR_RULE)
        .meta(clusterRules(['has(self.name) != has(self.nameExpr)', INJECTOR_RULE])),
    )
    .max(MAX_INJECTORS)
    .optional()
    .describe('Objects that are injected.'),
});

const TARGET_RULE = 'must specify exactly one of repositories, repositorySelector and objectSelector';

/** A label selector that can be evaluated. */
const selectorSchema = labelSelectorSchema.superRefine((selector, context) => {
  try {
    labelSelector(selector);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
  }
});

const target = z
  .object({
    repositories: z
      .array(
        z.object({
          name: objectName.describe('Name of the Repository object.'),
          packageNames: z
            .array(packagePath)
            .min(1)
            .max(MAX_TARGETS)
            .optional()
            .describe('Paths of the downstream packages. Defaults to the path of the upstream package.'),
        }),
      )
      .min(1)
      .max(MAX_TARGETS)
      .optional()
      .describe('Repositories by name.'),
    repositorySelector: selectorSchema.optional().describe('Label selector for Repository objects.'),
    objectSelector: z
      .object({
        ...labelSelectorSchema.shape,
        apiVersion: z.string().min(1).describe('API version of the objects.'),
        kind: z.string().min(1).describe('Kind of the objects.'),
        name: objectName.optional().describe('Name of the object. Defaults to all.'),
      })
      .superRefine(({ matchLabels, matchExpressions }, context) => {
        const checked = selectorSchema.safeParse({ matchLabels, matchExpressions });
        for (const { message } of checked.error?.issues ?? []) context.addIssue({ code: 'custom', message });
      })
      .optional()
      .describe(
        'Selector for objects of a namespaced kind, except Secrets, in the namespace of the set. Their names are those of repositories. In a cluster, Sluice needs the right to list and watch the kind.',
      ),
    template: template.optional().describe('Fields of the variants of the target.'),
  })
  .refine(
    ({ repositories, repositorySelector, objectSelector }) =>
      [repositories, repositorySelector, objectSelector].filter((one) => one !== undefined).length === 1,
    TARGET_RULE,
  )
  .meta(
    clusterRules([
      '(has(self.repositories) ? 1 : 0) + (has(self.repositorySelector) ? 1 : 0) + (has(self.objectSelector) ? 1 : 0) == 1',
      TARGET_RULE,
    ]),
  );

/** The fixed parts of downstream packages. */
function* determinedBy(targets: readonly DeepReadonly<z.output<typeof target>>[]) {
  for (const [index, { repositories = [], template: fields }] of targets.entries()) {
    const at = ['spec', 'targets', index];
    for (const [place, { packageNames = [] }] of repositories.entries())
      for (const [position, path] of packageNames.entries())
        yield { path, at: [...at, 'repositories', place, 'packageNames', position] };
    const path = fields?.downstream?.package;
    yield { at: [...at, 'template'], labels: fields?.labels, annotations: fields?.annotations };
    if (path !== undefined) yield { path, at: [...at, 'template', 'downstream', 'package'] };
  }
}

export const packageVariantSetKind = defineKind({
  group: 'config.porch.kpt.dev',
  version: 'v1alpha2',
  kind: 'PackageVariantSet',
  plural: 'packagevariantsets',
  categories: ['kpt', 'all'],
  description: 'Package variants of one upstream package, one for each of its targets.',
  // Lists of repositories and packages.
  maxValues: 40_000,
  strategy: {
    validate: (set) => [...revisionCauses(set, determinedBy(set.spec.targets)), ...expressionCauses(set.spec.targets)],
  },
  spec: z
    .object({
      upstream: upstreamSchema,
      targets: z.array(target).min(1).max(MAX_TARGET_ENTRIES).describe('Targets of the set.'),
      maxTargets: z
        .int()
        .min(1)
        .max(MAX_TARGETS)
        .default(DEFAULT_MAX_TARGETS)
        .describe('Maximum number of variants. A set with more does nothing and reports it.'),
      maxDrafts: z
        .int()
        .min(1)
        .max(MAX_TARGETS)
        .optional()
        .describe(
          'Maximum number of drafts and proposals that the variants have open at a time. The other ones wait until some are published or deleted. Defaults to no limit.',
        ),
    })
    .describe('Desired variants.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      variants: z
        .object({
          total: z.int().min(0).describe('Number of variants.'),
          ready: z.int().min(0).describe('Number of variants whose downstream packages are up to date.'),
          waiting: z
            .int()
            .min(0)
            .describe(
              'Number of variants that wait until maxDrafts permits another draft, or until users have approved or rejected a Proposed revision.',
            ),
          failing: z.int().min(0).describe('Number of variants that report a problem.'),
        })
        .optional()
        .describe('Variants of the set by their conditions. The remaining ones have not been carried out yet.'),
    })
    .describe('Observed state of the set.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Repository',
      type: 'string',
      jsonPath: '.spec.upstream.repo',
      value: ({ spec }) => spec.upstream.repo,
    },
    {
      name: 'Upstream',
      type: 'string',
      jsonPath: '.spec.upstream.package',
      value: ({ spec }) => spec.upstream.package,
    },
    READY_COLUMN,
    {
      name: 'Variants',
      type: 'integer',
      jsonPath: '.status.variants.total',
      value: ({ status }) => status?.variants?.total,
    },
    {
      name: 'Current',
      type: 'integer',
      jsonPath: '.status.variants.ready',
      value: ({ status }) => status?.variants?.ready,
    },
    {
      name: 'Waiting',
      type: 'integer',
      jsonPath: '.status.variants.waiting',
      value: ({ status }) => status?.variants?.waiting,
    },
    {
      name: 'Failing',
      type: 'integer',
      jsonPath: '.status.variants.failing',
      value: ({ status }) => status?.variants?.failing,
    },
    AGE_COLUMN,
  ],
});

export type PackageVariantSet = ObjectOf<typeof packageVariantSetKind>;
