import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';

const clientConfigSchema = z.looseObject({
  service: z
    .looseObject({
      namespace: z.string().optional().describe('Namespace of the Service.'),
      name: z.string().optional().describe('Name of the Service.'),
    })
    .nullish()
    .describe('Service that serves the webhook.'),
  caBundle: z
    .base64()
    .nullish()
    .describe('CA bundle that the TLS certificate of the webhook is verified against; PEM, in base64.'),
});

/** Of a cluster: the webhooks that a kube-apiserver calls before it stores an object. All fields but those that Sluice sets stay as they are. */
export const validatingWebhookConfigurationKind = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
  description: 'Webhooks that check writes before they are stored.',
  fields: {
    webhooks: z
      .array(z.looseObject({ name: z.string().describe('Name of the webhook.'), clientConfig: clientConfigSchema }))
      .nullish()
      .describe('Webhooks that are called.'),
  },
});
