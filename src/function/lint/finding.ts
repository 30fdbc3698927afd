/** A problem of a package at a line of a file, or a fact about it. */
export interface Finding {
  /** As the caller names files: below the package folder, or from the root of the repository. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly severity: 'error' | 'warning' | 'notice';
  readonly message: string;
  /** One word for programs. */
  readonly code: string;
}

/** A finding about a file as a whole. */
export function findingAt(file: string, rest: Pick<Finding, 'severity' | 'message' | 'code'>): Finding {
  return { ...{ file, line: 1, column: 1 }, ...rest };
}

/** The same findings with the files below a folder; `.` or empty is the root. */
export function findingsBelow(folder: string, findings: readonly Finding[]): Finding[] {
  const place = folder === '.' || folder === '' ? '' : `${folder}/`;
  return findings.map((finding) => ({ ...finding, file: `${place}${finding.file}` }));
}
