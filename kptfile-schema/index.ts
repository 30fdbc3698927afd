export { applyKptfileEdit } from './apply-kptfile-edit.ts';
export { conditionsOf, gatesOf } from './conditions.ts';
export { contentOf } from './content-of.ts';
export { editKptfile } from './edit-kptfile.ts';
export { isAcceptedByKpt } from './is-accepted-by-kpt.ts';
export { kptfileJsonSchema } from './json-schema.ts';
export {
  type KptfileEdit,
  KptfileEditError,
  type KptfileEditErrorCode,
  kptfileEditSchema,
} from './kptfile-edit.ts';
export { KPTFILE_ERROR_CODES, type KptfileError, type KptfileErrorCode } from './kptfile-error.ts';
export {
  type Condition,
  type ConditionStatus,
  type Inventory,
  type KptFunction,
  type Kptfile,
  type KptfileCondition,
  type KptfileStatus,
  kptfileSchema,
  type PackageInfo,
  type PackageMetadata,
  type Pipeline,
  type PipelineStepResult,
  type ReadinessGate,
  type RenderStatus,
  type ResultItem,
  type Selector,
  type Upstream,
  type UpstreamLock,
} from './kptfile-schema.ts';
export { MAX_CONDITIONS, MAX_GATES, MAX_KPTFILE_BYTES } from './limits.ts';
export type { LintCode, LintFinding } from './lint-finding.ts';
export { lintKptfile } from './lint-kptfile.ts';
export { type NewKptfile, newKptfile } from './new-kptfile.ts';
export { type ReadOptions, type ReadResult, readKptfile } from './read-kptfile.ts';
