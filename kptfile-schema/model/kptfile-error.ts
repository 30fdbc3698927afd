/** Why a text is not a readable Kptfile. A closed set: programs may switch over it. */
export const KPTFILE_ERROR_CODES = [
  /** Not valid YAML. */
  'Syntax',
  /** Lines such as `<<<<<<< HEAD` that a Git merge left behind. */
  'MergeConflict',
  /** A key occurs twice in one mapping. */
  'DuplicateKey',
  /** An anchor, alias or merge key: refused, because aliases can expand without bound. */
  'Anchor',
  /** A tab where YAML requires spaces. */
  'Tab',
  /** More than one YAML document. */
  'SeveralDocuments',
  /** More bytes than allowed. */
  'TooLarge',
  /** More readiness gates, conditions or values than allowed. */
  'TooMany',
  /** Nested deeper than allowed. */
  'TooDeep',
  /** Not UTF-8, or characters that YAML forbids. */
  'Encoding',
  /** YAML, but not a Kptfile: other kind or apiVersion, or no mapping at all. */
  'NotAKptfile',
  /** kpt.dev/v1alpha1 or kpt.dev/v1alpha2. */
  'DeprecatedVersion',
  /** kpt.dev with a version that is not known. */
  'UnknownVersion',
  /** A field has the wrong form, such as a mapping where a list is expected. */
  'Shape',
] as const;

export type KptfileErrorCode = (typeof KPTFILE_ERROR_CODES)[number];

/** Describes the problem and the next step. Line and column count from 1; columns in UTF-16 units. */
export interface KptfileError {
  readonly code: KptfileErrorCode;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  /** The field, as in `pipeline.mutators[0].configMap`, where one is concerned. */
  readonly path?: string;
}

/** Carries a KptfileError out of the parser; never leaves this library. */
export class KptfileReadFailure extends Error {
  readonly error: KptfileError;

  constructor(error: KptfileError) {
    super(error.message);
    this.name = 'KptfileReadFailure';
    this.error = error;
  }
}
