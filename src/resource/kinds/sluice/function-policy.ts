import { z } from 'zod';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';

const ONE_ACTION = 'must have exactly one of builtIn, exec, container and forbid';

const ruleSchema = z
  .object({
    image: z
      .string()
      .max(1024)
      .regex(
        /^[a-z0-9][a-z0-9._\-/:]*[a-z0-9]$/i,
        'must be the name of an image without tag, with or without its registry',
      )
      .describe(
        'Image without tag: set-namespace matches every registry, ghcr.io/kptdev/krm-functions-catalog/set-namespace only this one.',
      ),
    tags: z.array(z.string().min(1)).optional().describe('Tags that the rule matches. Defaults to all tags.'),
    builtIn: z.string().min(1).optional().describe('Built-in function that runs in place of the image.'),
    exec: z
      .string()
      .min(1)
      .optional()
      .describe('Program that runs in place of the image; a file in the folder that the operator permits.'),
    container: z
      .object({
        digest: z
          .string()
          .regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hexadecimal digits')
          .optional()
          .describe('Digest of the image that runs, whatever the tag refers to.'),
      })
      .optional()
      .describe('Runs the image as a container, even if a built-in function has the same name.'),
    forbid: z.string().min(1).optional().describe('Forbids the function. The text is returned as the reason.'),
  })
  .refine(
    ({ builtIn, exec, container, forbid }) =>
      [builtIn, exec, container, forbid].filter((each) => each !== undefined).length === 1,
    ONE_ACTION,
  )
  .meta(
    clusterRules([
      // A list with a filter would exceed what a kube-apiserver lets the rules of all items cost.
      '(has(self.builtIn) ? 1 : 0) + (has(self.exec) ? 1 : 0) + (has(self.container) ? 1 : 0) + (has(self.forbid) ? 1 : 0) == 1',
      ONE_ACTION,
    ]),
  );

export const functionPolicyKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'FunctionPolicy',
  plural: 'functionpolicies',
  shortNames: ['fp'],
  categories: ['sluice', 'all'],
  description:
    'What runs for the functions that pipelines name: which are replaced, pinned or forbidden in its namespace.',
  spec: z
    .object({
      rules: z.array(ruleSchema).default([]).describe('Rules for functions. The first matching rule applies.'),
    })
    .describe('Rules of the policy.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Images',
      type: 'string',
      jsonPath: '.spec.rules[*].image',
      value: (object) => object.spec.rules.map(({ image }) => image).join(','),
    },
    AGE_COLUMN,
  ],
});
