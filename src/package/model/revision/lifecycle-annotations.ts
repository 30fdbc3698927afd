/** Porch's annotation for revisions that are proposed automatically; on the object or in its Kptfile. */
export const AUTO_LIFECYCLE_ANNOTATION = 'config.porch.kpt.dev/auto-lifecycle-mgmt';
/** Nephio's: `initial` or `always`. */
export const APPROVAL_POLICY_ANNOTATION = 'approval.nephio.org/policy';
/** Nephio's: a Go duration, counted from the creation of the revision. */
export const APPROVAL_DELAY_ANNOTATION = 'approval.nephio.org/delay';

/** Those that request an approval. */
export const APPROVAL_ANNOTATIONS: readonly string[] = [APPROVAL_POLICY_ANNOTATION, APPROVAL_DELAY_ANNOTATION];

/** Those of a Kptfile that request automatic steps. They belong to one package: clones and upgrades do not take them from upstream. */
export const KPTFILE_REQUEST_ANNOTATIONS: readonly string[] = [AUTO_LIFECYCLE_ANNOTATION, ...APPROVAL_ANNOTATIONS];

type Annotations = Readonly<Record<string, string>> | undefined;

/** An annotation of a revision that requests automatic steps: its object's own, else, where a policy enables those, its Kptfile's. */
export function lifecycleAnnotation(
  key: string,
  { own, kptfile }: { readonly own: Annotations; readonly kptfile: Annotations },
  { kptfileApprovals }: { readonly kptfileApprovals: boolean },
): string | undefined {
  for (const annotations of kptfileApprovals ? [own, kptfile] : [own])
    if (annotations !== undefined && Object.hasOwn(annotations, key)) return annotations[key];
  return undefined;
}
