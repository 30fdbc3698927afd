import type { KrmFunction } from '../model/function.ts';
import { applyReplacements } from './apply-replacements/apply-replacements.ts';
import { applySetters } from './apply-setters.ts';
import { celValidation } from './cel-validation/cel-validation.ts';
import { createSetters } from './create-setters.ts';
import { deleteAnnotations } from './delete-annotations.ts';
import { dropComments } from './drop-comments.ts';
import { enableGcpServices } from './enable-gcp-services.ts';
import { ensureNameSubstring } from './ensure-name-substring.ts';
import { genConfigmap } from './gen-configmap.ts';
import { generateFolders } from './generate-folders.ts';
import { kubeconform, kubeval } from './kubeconform/kubeconform.ts';
import { listSetters } from './list-setters.ts';
import { removeLocalConfigResources } from './remove-local-config-resources.ts';
import { searchReplace } from './search-replace/search-replace.ts';
import { setAnnotations } from './set-annotations.ts';
import { setDefaultName } from './set-default-name.ts';
import { setImage } from './set-image.ts';
import { setLabels } from './set-labels.ts';
import { setNamePrefix } from './set-name-prefix.ts';
import { setNamespace } from './set-namespace.ts';
import { setStandardLabels } from './set-standard-labels.ts';
import { starlark } from './starlark.ts';
import { upsertResource } from './upsert-resource.ts';

/** The built-in functions of Sluice. */
export const builtIns: readonly KrmFunction[] = [
  applyReplacements,
  applySetters,
  celValidation,
  createSetters,
  deleteAnnotations,
  dropComments,
  enableGcpServices,
  ensureNameSubstring,
  genConfigmap,
  generateFolders,
  kubeconform,
  kubeval,
  listSetters,
  removeLocalConfigResources,
  searchReplace,
  setAnnotations,
  setDefaultName,
  setImage,
  setLabels,
  setNamePrefix,
  setNamespace,
  setStandardLabels,
  starlark,
  upsertResource,
];
