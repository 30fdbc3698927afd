export { applyKptfileEdit } from './edit/apply-kptfile-edit.ts';
export { editKptfile } from './edit/edit-kptfile.ts';
export { type NewKptfile, newKptfile } from './edit/new-kptfile.ts';
export { isAcceptedByKpt } from './lint/is-accepted-by-kpt.ts';
export type { LintCode, LintFinding } from './lint/lint-finding.ts';
export { lintKptfile } from './lint/lint-kptfile.ts';
export { conditionsOf, gatesOf } from './model/conditions.ts';
export { contentOf } from './model/content-of.ts';
export { kptfileJsonSchema } from './model/json-schema.ts';
export {
  type KptfileEdit,
  KptfileEditError,
  type KptfileEditErrorCode,
  kptfileEditSchema,
} from './model/kptfile-edit.ts';
export { KPTFILE_ERROR_CODES, type KptfileError, type KptfileErrorCode } from './model/kptfile-error.ts';
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
} from './model/kptfile-schema.ts';
export { MAX_CONDITIONS, MAX_GATES, MAX_KPTFILE_BYTES } from './model/limits.ts';
export { type ReadOptions, type ReadResult, readKptfile } from './read/read-kptfile.ts';
