import { z } from 'zod';
import { clusterRules } from '../../../schema/cluster-rule.ts';
import { labelSelectorSchema } from '../../../selector/label-selector.ts';
import { httpUrlSchema } from '../../common/http-url.ts';

const WEBHOOK_NEEDS_URL = 'must have url exactly if type is Webhook';

const triggerSchema = z
  .object({
    type: z
      .enum(['Annotation', 'Webhook'])
      .describe(
        'Annotation: sets the annotations that refresh the Applications and ApplicationSets, or GitRepositories, of the target. Webhook: posts the push to url.',
      ),
    url: httpUrlSchema
      .optional()
      .describe(
        "For Webhook: the address of Argo CD's /api/webhook, or of a Receiver of Flux of the type generic-hmac.",
      ),
    secretRef: z
      .object({
        name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.'),
        key: z.string().min(1).max(253).default('token').describe('Key of the Secret. Default: token.'),
      })
      .optional()
      .describe('For Webhook: Secret that signs the message (X-Hub-Signature-256 and X-Signature).'),
  })
  .refine(({ type, url }) => (type === 'Webhook') === (url !== undefined), WEBHOOK_NEEDS_URL)
  .meta(clusterRules(["(self.type == 'Webhook') == has(self.url)", WEBHOOK_NEEDS_URL]))
  .describe('Starts a sync of the engine after each push, so that it need not wait for its next poll.');

export const ENGINE_TYPES = ['ArgoCD', 'Flux', 'CommitStatus'] as const;

/** The engine that deploys what a target delivers, and where it reports. */
export const engineSchema = z
  .object({
    type: z
      .enum(ENGINE_TYPES)
      .describe(
        'Source of the reports: Applications of Argo CD, Kustomizations of Flux, or commit statuses on the Git host.',
      ),
    namespace: z
      .string()
      .min(1)
      .max(63)
      .optional()
      .describe('Namespace of the objects of the engine. Default: argocd or flux-system.'),
    name: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(
        'Name of the Application or Kustomization. Without name and selector: every one whose source is the repository and branch of the target, and a path inside or above its directory.',
      ),
    selector: labelSelectorSchema.optional().describe('Label selector for Applications or Kustomizations.'),
    kubeconfigSecretRef: z
      .object({
        name: z.string().min(1).describe('Name of a Secret in the same namespace.'),
        key: z.string().min(1).max(253).default('value').describe('Key of the Secret with the kubeconfig.'),
      })
      .optional()
      .describe('Kubeconfig of the cluster of the engine. Default: the cluster that Sluice runs in.'),
    context: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        'Pattern of the contexts of commit statuses, in which * stands for any characters. Default: kustomization/*.',
      ),
    packageContext: z
      .string()
      .max(255)
      .regex(
        /^[^*{}]*\{package\}[^*{}]*$/,
        'must contain {package} once, and none of the characters *, { and } besides',
      )
      .optional()
      .describe(
        'Contexts of commit statuses about single packages, in which {package} stands for the path of the package in the directory of the target, such as sluice/edge-east/{package}. They apply to their packages instead of those of context.',
      ),
    trigger: triggerSchema.optional(),
  })
  .describe('Engine that deploys the target, and where its reports are read.');
