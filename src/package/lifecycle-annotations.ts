/** Porch's mark for revisions that are proposed without being asked; an annotation of the object or of its Kptfile. */
export const AUTO_LIFECYCLE_ANNOTATION = 'config.porch.kpt.dev/auto-lifecycle-mgmt';
/** Nephio's: `initial` or `always`. */
export const APPROVAL_POLICY_ANNOTATION = 'approval.nephio.org/policy';
/** Nephio's: a Go duration, counted from the creation of the revision. */
export const APPROVAL_DELAY_ANNOTATION = 'approval.nephio.org/delay';
