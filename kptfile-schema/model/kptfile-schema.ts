import * as z from 'zod';

// The fields follow kpt's own Go types (api/kptfile/v1/types.go). Objects are loose: a field that is not
// listed passes through, because newer kpt versions, and people, add some. lintKptfile reports them.

const text = z.string();
const textMap = z.record(z.string(), z.string());

const conditionStatusSchema = z.enum(['True', 'False', 'Unknown']);

/** A condition as it may be written: exactly the four fields that kpt has, and a valid status. */
export const conditionSchema = z.strictObject({
  type: text.min(1).describe('What the condition is about; unique in the list.'),
  status: conditionStatusSchema.describe('True, False or Unknown, as a string.'),
  reason: text.exactOptional().describe('One word in CamelCase for programs. Nephio keeps the owner type here.'),
  message: text.exactOptional().describe('Human-readable message.'),
});

/** A condition as a file may hold it: kpt does not check the status, so it may be any text. */
const kptfileConditionSchema = z.looseObject({
  type: text.exactOptional().describe('What the condition is about; unique in the list.'),
  status: text.exactOptional().describe('True, False or Unknown, as a string.'),
  reason: text.exactOptional().describe('One word in CamelCase for programs. Nephio keeps the owner type here.'),
  message: text.exactOptional().describe('Human-readable message.'),
});

const readinessGateSchema = z.looseObject({
  conditionType: text.exactOptional().describe('The condition that must be True before the package is ready.'),
});

const metadataSchema = z.looseObject({
  name: text.exactOptional().describe('Name of the package.'),
  namespace: text.exactOptional(),
  labels: textMap.exactOptional(),
  annotations: textMap.exactOptional(),
});

const gitUpstreamSchema = z.looseObject({
  repo: text.exactOptional().describe('URL of the Git repository.'),
  directory: text.exactOptional().describe('Folder of the package inside the repository.'),
  ref: text.exactOptional().describe('Branch, tag or commit.'),
});

export const upstreamSchema = z.looseObject({
  type: text.exactOptional().describe('git, or generic for a package that comes from another kind of store.'),
  git: gitUpstreamSchema.exactOptional(),
  updateStrategy: text.exactOptional().describe('resource-merge, fast-forward, force-delete-replace or copy-merge.'),
});

export const upstreamLockSchema = z.looseObject({
  type: text.exactOptional().describe('git or generic.'),
  git: gitUpstreamSchema
    .extend({ commit: text.exactOptional().describe('The commit that was fetched.') })
    .exactOptional(),
  generic: z
    .looseObject({
      storeID: text.exactOptional(),
      resourceID: text.exactOptional(),
      resourceVersion: text.exactOptional(),
    })
    .exactOptional(),
});

const packageInfoSchema = z.looseObject({
  site: text.exactOptional().describe('URL of a page about the package.'),
  emails: z.array(text).exactOptional(),
  license: text.exactOptional().describe('SPDX identifier of the licence.'),
  licenseFile: text.exactOptional().describe('Path of the licence file.'),
  description: text.exactOptional(),
  keywords: z.array(text).exactOptional(),
  man: text.exactOptional().describe('Path of the manual page.'),
  readinessGates: z.array(readinessGateSchema).exactOptional(),
});

const selectorSchema = z.looseObject({
  apiVersion: text.exactOptional(),
  kind: text.exactOptional(),
  name: text.exactOptional(),
  namespace: text.exactOptional(),
  labels: textMap.exactOptional(),
  annotations: textMap.exactOptional(),
});

export const kptFunctionSchema = z.looseObject({
  image: text
    .exactOptional()
    .describe('Container image; a short name is looked up in ghcr.io/kptdev/krm-functions-catalog.'),
  tag: text.exactOptional().describe('Overrides the tag of the image; may be a semantic version constraint.'),
  exec: text.exactOptional().describe('Executable on the machine, instead of an image.'),
  configPath: text.exactOptional().describe('File inside the package with the function configuration.'),
  configMap: textMap.exactOptional().describe('Function configuration as key and value.'),
  name: text.exactOptional().describe('Identifies the function when pipelines are merged.'),
  selectors: z.array(selectorSchema).exactOptional().describe('Resources that the function gets.'),
  exclude: z.array(selectorSchema).exactOptional().describe('Resources that are taken out of the selection.'),
  configRef: z
    .looseObject({
      apiVersion: text.exactOptional(),
      kind: text.exactOptional(),
      name: text.exactOptional(),
      namespace: text.exactOptional(),
    })
    .exactOptional()
    .describe('Reference to the configuration in the package; only newer kpt versions know it.'),
  when: text.exactOptional().describe('CEL; the function is skipped if false. Only newer kpt versions know it.'),
});

const pipelineSchema = z.looseObject({
  mutators: z.array(kptFunctionSchema).exactOptional(),
  validators: z.array(kptFunctionSchema).exactOptional(),
});

const inventorySchema = z.looseObject({
  namespace: text.exactOptional(),
  name: text.exactOptional(),
  inventoryID: text.exactOptional(),
  labels: textMap.exactOptional(),
  annotations: textMap.exactOptional(),
});

const resultItemSchema = z.looseObject({
  message: text.exactOptional(),
  severity: text.exactOptional(),
  resourceRef: z
    .looseObject({
      apiVersion: text.exactOptional(),
      kind: text.exactOptional(),
      name: text.exactOptional(),
      namespace: text.exactOptional(),
    })
    .exactOptional(),
  field: z
    .looseObject({
      path: text.exactOptional(),
      currentValue: z.unknown().optional(),
      proposedValue: z.unknown().optional(),
    })
    .exactOptional(),
  file: z.looseObject({ path: text.exactOptional(), index: z.int().exactOptional() }).exactOptional(),
  tags: textMap.exactOptional(),
});

const pipelineStepResultSchema = z.looseObject({
  name: text.exactOptional(),
  image: text.exactOptional(),
  exec: text.exactOptional(),
  executionError: text.exactOptional(),
  stderr: text.exactOptional(),
  exitCode: z.int().exactOptional(),
  results: z.array(resultItemSchema).exactOptional(),
  errorResults: z.array(resultItemSchema).exactOptional(),
});

export const renderStatusSchema = z.looseObject({
  mutationSteps: z.array(pipelineStepResultSchema).exactOptional(),
  validationSteps: z.array(pipelineStepResultSchema).exactOptional(),
  errorSummary: text.exactOptional(),
});

const statusSchema = z.looseObject({
  conditions: z.array(kptfileConditionSchema).exactOptional(),
  renderStatus: renderStatusSchema.exactOptional(),
});

/** The Kptfile of apiVersion kpt.dev/v1. Loose: unknown fields pass through at every level. */
export const kptfileSchema = z.looseObject({
  apiVersion: z.literal('kpt.dev/v1'),
  kind: z.literal('Kptfile'),
  metadata: metadataSchema.exactOptional(),
  upstream: upstreamSchema.exactOptional().describe('Where the package comes from, as its user wants it.'),
  upstreamLock: upstreamLockSchema.exactOptional().describe('What was really fetched; written by kpt.'),
  info: packageInfoSchema.exactOptional(),
  pipeline: pipelineSchema.exactOptional().describe('Functions that render the package.'),
  inventory: inventorySchema.exactOptional().describe('Where kpt live keeps what it applied.'),
  status: statusSchema.exactOptional().describe('Written by controllers and by kpt fn render.'),
});

export interface Kptfile extends z.infer<typeof kptfileSchema> {}
export interface PackageMetadata extends z.infer<typeof metadataSchema> {}
export interface Upstream extends z.infer<typeof upstreamSchema> {}
export interface UpstreamLock extends z.infer<typeof upstreamLockSchema> {}
export interface PackageInfo extends z.infer<typeof packageInfoSchema> {}
export interface ReadinessGate extends z.infer<typeof readinessGateSchema> {}
export interface Pipeline extends z.infer<typeof pipelineSchema> {}
export interface KptFunction extends z.infer<typeof kptFunctionSchema> {}
export interface Selector extends z.infer<typeof selectorSchema> {}
export interface Inventory extends z.infer<typeof inventorySchema> {}
export interface KptfileStatus extends z.infer<typeof statusSchema> {}
/** A condition in a file: any text may be its status. See Condition and conditionsOf. */
export interface KptfileCondition extends z.infer<typeof kptfileConditionSchema> {}
export interface RenderStatus extends z.infer<typeof renderStatusSchema> {}
export interface PipelineStepResult extends z.infer<typeof pipelineStepResultSchema> {}
export interface ResultItem extends z.infer<typeof resultItemSchema> {}

export type ConditionStatus = z.infer<typeof conditionStatusSchema>;
/** A condition with a valid status: what conditionsOf returns and setCondition accepts. */
export interface Condition extends z.infer<typeof conditionSchema> {}
