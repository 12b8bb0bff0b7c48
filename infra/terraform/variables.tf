variable "bucket" {
  description = "Name of the bucket for artifacts; no other bucket of the world may have it."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket: use 3 to 63 lower-case letters, digits and hyphens."
  }
}

variable "prefix" {
  description = "What MARCH_ARTIFACTS names after the bucket, without slashes around it."
  type        = string
  default     = "march"
  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.prefix))
    error_message = "prefix: use letters, digits, '.', '_', '-', and '/' between them."
  }
}

variable "kms_key_arn" {
  description = "Key for encryption; null: Amazon's own. With a key, a killed upload sends all its parts again (docs/artifacts.md)."
  type        = string
  default     = null
}

variable "removed_days" {
  description = "Days until what `march artifacts gc` removed is gone for good; null: never, and its bytes are paid for."
  type        = number
  default     = null
  validation {
    condition     = var.removed_days == null ? true : var.removed_days >= 30
    error_message = "removed_days: give 30 or more, or null; within it a mistaken removal can be taken back."
  }
}

variable "tags" {
  description = "Tags of all resources."
  type        = map(string)
  default     = {}
}
