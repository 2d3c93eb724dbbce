{{- define "atoll.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Arguments: root context and part. */}}
{{- define "atoll.labels" -}}
{{ include "atoll.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "atoll.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "atoll.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "atoll.fleetApis" -}}
{{ .Values.fleetApis | default (printf "%s-api-fleet.%s.svc:3300" (include "atoll.name" .) .Release.Namespace) }}
{{- end }}

{{/* Variables of every part, then those of the operator, which win. */}}
{{- define "atoll.commonEnv" -}}
- name: ATOLL_LOG
  value: stdout
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Variables with which an edge or a node joins. */}}
{{- define "atoll.joinEnv" -}}
- name: ATOLL_FLEET_APIS
  value: {{ include "atoll.fleetApis" . | quote }}
- name: ATOLL_FLEET_JOIN_TOKEN_FILE
  value: /etc/atoll/join/token
- name: ATOLL_FLEET_CA_FILE
  value: /etc/atoll/join/ca.crt
{{- end }}

{{- define "atoll.joinVolume" -}}
- name: join
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          audience: atoll-fleet
          expirationSeconds: 600
      - configMap:
          name: {{ .Values.authority.configMapName }}
          items:
            - key: {{ .Values.authority.configMapKey }}
              path: ca.crt
{{- end }}

{{/* Replicas on different machines where possible, and never on machines of nodes. */}}
{{- define "atoll.affinity" -}}
{{- if .values.affinity }}
{{- toYaml .values.affinity }}
{{- else }}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "atoll.selector" . | nindent 12 }}
{{- if and .root.Values.keepApart .root.Values.node.nodeSelector }}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range $key, $value := .root.Values.node.nodeSelector }}
      - matchExpressions:
          - key: {{ $key }}
            operator: NotIn
            values: [{{ $value | quote }}]
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "atoll.disruptionBudgetVersion" -}}
{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}policy/v1{{ else }}policy/v1beta1{{ end }}
{{- end }}
