# The bucket of the artifact store (docs/artifacts.md). It cannot be destroyed by a plan: registered versions lie in it.
resource "aws_s3_bucket" "artifacts" {
  bucket = var.bucket
  tags   = var.tags
  lifecycle {
    prevent_destroy = true
  }
}

# A removal is a marker and an overwrite keeps what was there.
resource "aws_s3_bucket_versioning" "artifacts" {
  bucket = aws_s3_bucket.artifacts.id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "artifacts" {
  bucket = aws_s3_bucket.artifacts.id
  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_public_access_block" "artifacts" {
  bucket                  = aws_s3_bucket.artifacts.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "artifacts" {
  bucket = aws_s3_bucket.artifacts.id
  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_policy" "artifacts" {
  bucket     = aws_s3_bucket.artifacts.id
  policy     = templatefile("${path.module}/policies/tls-only.json.tftpl", local.names)
  depends_on = [aws_s3_bucket_public_access_block.artifacts]
}

# No rule removes a current version, whatever its age: what a registered version needs is current. What may go is what
# nobody reads: parts of uploads that were given up, and former contents of keys that are written again and again (a
# lease is written four times a minute). Objects that gc removed stay, unless removed_days says for how long.
resource "aws_s3_bucket_lifecycle_configuration" "artifacts" {
  bucket     = aws_s3_bucket.artifacts.id
  depends_on = [aws_s3_bucket_versioning.artifacts]

  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {
      prefix = "${var.prefix}/"
    }
    abort_incomplete_multipart_upload {
      days_after_initiation = 7 # a killed upload goes on within it; gc's own grace
    }
  }

  dynamic "rule" {
    for_each = { leases = 1, probe = 1, pointers = 90 }
    content {
      id     = "former-${rule.key}"
      status = "Enabled"
      filter {
        prefix = "${var.prefix}/${rule.key}/"
      }
      noncurrent_version_expiration {
        noncurrent_days = rule.value
      }
    }
  }

  # What is used again after half a day is written over by itself, which leaves equal former versions. The newest one
  # stays for good unless removed_days is given: it may be what gc removed.
  dynamic "rule" {
    for_each = toset(["objects", "models", "manifests"])
    content {
      id     = "removed-${rule.value}"
      status = "Enabled"
      filter {
        prefix = "${var.prefix}/${rule.value}/"
      }
      noncurrent_version_expiration {
        noncurrent_days           = coalesce(var.removed_days, 30)
        newer_noncurrent_versions = var.removed_days == null ? 1 : null
      }
    }
  }
}

locals {
  names = { bucket_arn = aws_s3_bucket.artifacts.arn, prefix = var.prefix }
  roles = {
    trainer  = "Publishes and reads, and decides nothing; removes nothing but the probe of the endpoint."
    promoter = "The same, and decides who is champion."
    gc       = "Reads, and removes current versions; a removal can be taken back."
    auditor  = "Reads."
  }
}

resource "aws_iam_policy" "role" {
  for_each    = local.roles
  name        = "${var.bucket}-${each.key}"
  description = each.value
  policy      = templatefile("${path.module}/policies/${each.key}.json.tftpl", local.names)
  tags        = var.tags
}

# Beside each of them where the bucket is encrypted by a key of its own.
resource "aws_iam_policy" "key" {
  count       = var.kms_key_arn == null ? 0 : 1
  name        = "${var.bucket}-key"
  description = "Encrypts and decrypts what lies in the bucket."
  policy      = templatefile("${path.module}/policies/key.json.tftpl", { key_arn = var.kms_key_arn })
  tags        = var.tags
}
